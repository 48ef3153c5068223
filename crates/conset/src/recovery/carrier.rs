//! How words are exchanged in a run with recovery: in phases, by messages, or by step plans. A carrier executes the sets that
//! are loaded, and loads what is left for a machine without its dead parts.

use std::borrow::Cow;
use std::sync::Arc;

use conset_fabric::messages::{MessageFabric, MessageOptions, MessageRoutes};
use conset_fabric::{
    Fabric, FabricOptions, FaultPlan, FaultPlanError, Interruption, PhaseReport, SetBuffers,
};
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, LinkId, Machine, Program, ScheduledSet, SetSchedule,
};

use super::{RecoveryOptions, Repair};
use crate::incremental::ReuseOutcome;
use crate::steps::{CompiledSteps, StepCompiler};
use crate::{CompileError, CompileOptions, Compiled, Compiler};

/// Two cells, and all links from the first one to the second.
pub(super) type LinkEnds = (CellId, CellId);

/// What exchanges the sets of a program. Sets are numbered as in the program that is loaded.
pub(super) trait Carrier {
    /// Exchanges a set; returns its phases, of which messages have none.
    fn exchange(
        &mut self,
        number: usize,
        data: &mut SetBuffers,
    ) -> Result<Vec<PhaseReport>, Box<Interruption>>;

    /// The sets that are loaded.
    fn sets(&self) -> Vec<Arc<ConnectionSet>>;

    /// The links over which the words of a connection go.
    fn links_of(&self, number: usize, connection: ConnectionId) -> Vec<LinkEnds>;

    /// Loads a program for the machine without some parts, if it fits; else says why not.
    fn load(
        &mut self,
        machine: &Arc<Machine>,
        program: &Program,
        repair: &mut Repair,
    ) -> Result<Result<(), String>, CompileError>;

    fn now(&self) -> u64;

    fn faults_acted(&self) -> &[Option<u64>];
}

/// Phases: a fabric and the program that it executes.
pub(super) struct PhaseCarrier<'a> {
    fabric: Fabric,
    compiled: Cow<'a, Compiled>,
    options: CompileOptions,
}

impl<'a> PhaseCarrier<'a> {
    pub(super) fn new(
        compiled: &'a Compiled,
        plan: &FaultPlan,
        options: &RecoveryOptions,
    ) -> Result<Self, FaultPlanError> {
        let loaded = FabricOptions::default().detection(options.detection);
        let fabric = Fabric::load(compiled.image().clone(), loaded).with_faults(plan)?;
        let compiled = Cow::Borrowed(compiled);
        Ok(Self { fabric, compiled, options: options.compile.clone() })
    }
}

impl Carrier for PhaseCarrier<'_> {
    fn exchange(
        &mut self,
        number: usize,
        data: &mut SetBuffers,
    ) -> Result<Vec<PhaseReport>, Box<Interruption>> {
        self.fabric.exchange_or_drain(number, data).map(|report| report.phases)
    }

    fn sets(&self) -> Vec<Arc<ConnectionSet>> {
        self.compiled.image().sets().iter().map(|set| set.set.clone()).collect()
    }

    fn links_of(&self, number: usize, connection: ConnectionId) -> Vec<LinkEnds> {
        let schedule: &SetSchedule = &self.compiled.schedule().sets()[number];
        let phases = schedule.timetable.routing().phases().iter();
        let routes = phases.flat_map(|phase| phase.iter()).filter(|r| r.connection == connection);
        routes.flat_map(|route| route.cells.windows(2)).map(|hop| (hop[0], hop[1])).collect()
    }

    /// Reuses the present schedule.
    fn load(
        &mut self,
        machine: &Arc<Machine>,
        program: &Program,
        repair: &mut Repair,
    ) -> Result<Result<(), String>, CompileError> {
        let compiler = Compiler::new(machine).options(self.options.clone());
        let compiled = match compiler.reuse(self.compiled.schedule()).compile(program) {
            Ok(compiled) => compiled,
            Err(CompileError::Infeasible(infeasible)) => return Ok(Err(infeasible.reason)),
            Err(other) => return Err(other),
        };
        for (set, schedule) in compiled.sets().iter().zip(compiled.schedule().sets()) {
            match &set.reuse {
                Some(ReuseOutcome::Reused(report)) => {
                    repair.kept += report.kept;
                    repair.moved += report.moved;
                    repair.rerouted += report.rerouted + report.inserted;
                }
                _ => repair.recompiled += schedule.set().len(),
            }
        }
        self.fabric.resume(compiled.image().clone());
        self.compiled = Cow::Owned(compiled);
        Ok(Ok(()))
    }

    fn now(&self) -> u64 {
        self.fabric.now()
    }

    fn faults_acted(&self) -> &[Option<u64>] {
        self.fabric.faults_acted()
    }
}

/// What is exchanged by messages.
enum Messages<'a> {
    /// Each connection by a message of its own.
    Sets(Vec<Arc<ConnectionSet>>, MessageOptions),
    /// By step plans.
    Steps(Cow<'a, CompiledSteps>),
}

/// Messages, whose routes the machine finds by itself.
pub(super) struct MessageCarrier<'a> {
    fabric: MessageFabric,
    machine: Arc<Machine>,
    messages: Messages<'a>,
    max_plans: Option<u32>,
}

impl<'a> MessageCarrier<'a> {
    pub(super) fn of_sets(
        machine: &Arc<Machine>,
        program: &Program,
        messages: MessageOptions,
        plan: &FaultPlan,
        options: &RecoveryOptions,
    ) -> Result<Self, FaultPlanError> {
        let messages = Messages::Sets(program.sets().to_vec(), messages);
        Self::new(machine, messages, plan, options)
    }

    pub(super) fn of_steps(
        compiled: &'a CompiledSteps,
        plan: &FaultPlan,
        options: &RecoveryOptions,
    ) -> Result<Self, FaultPlanError> {
        let messages = Messages::Steps(Cow::Borrowed(compiled));
        Self::new(compiled.schedule().machine(), messages, plan, options)
    }

    fn new(
        machine: &Arc<Machine>,
        messages: Messages<'a>,
        plan: &FaultPlan,
        options: &RecoveryOptions,
    ) -> Result<Self, FaultPlanError> {
        let fabric = MessageFabric::new(machine.clone(), plan, options.detection)?;
        let max_plans = options.compile.max_plans;
        Ok(Self { fabric, machine: machine.clone(), messages, max_plans })
    }
}

impl Carrier for MessageCarrier<'_> {
    fn exchange(
        &mut self,
        number: usize,
        data: &mut SetBuffers,
    ) -> Result<Vec<PhaseReport>, Box<Interruption>> {
        let done = match &self.messages {
            Messages::Sets(sets, options) => {
                self.fabric.exchange_or_drain(&sets[number], options, data)
            }
            Messages::Steps(compiled) => {
                let steps = &compiled.schedule().sets()[number].steps;
                self.fabric.exchange_steps_or_drain(steps, data)
            }
        };
        done.map(|()| Vec::new())
    }

    fn sets(&self) -> Vec<Arc<ConnectionSet>> {
        match &self.messages {
            Messages::Sets(sets, _) => sets.clone(),
            Messages::Steps(compiled) => {
                compiled.schedule().sets().iter().map(|set| set.steps.set().clone()).collect()
            }
        }
    }

    fn links_of(&self, number: usize, connection: ConnectionId) -> Vec<LinkEnds> {
        let messages: Vec<LinkEnds> = match &self.messages {
            Messages::Sets(sets, _) => {
                let row = sets[number].get(connection);
                vec![(row.source, row.target)]
            }
            Messages::Steps(compiled) => {
                let all = compiled.schedule().sets()[number].steps.messages().iter();
                let carries = all.filter(|message| {
                    message.pieces.iter().any(|piece| piece.connection == connection)
                });
                carries.map(|message| (message.source, message.target)).collect()
            }
        };
        let (mut routes, mut links) = (MessageRoutes::new(&self.machine), Vec::<LinkId>::new());
        for (source, target) in messages {
            routes.links(source, target, &mut links);
        }
        let ends = |&id: &LinkId| (self.machine.link(id).source, self.machine.link(id).target);
        links.iter().map(ends).collect()
    }

    fn load(
        &mut self,
        machine: &Arc<Machine>,
        program: &Program,
        repair: &mut Repair,
    ) -> Result<Result<(), String>, CompileError> {
        match &mut self.messages {
            Messages::Sets(sets, _) => {
                let (mut routes, mut links) = (MessageRoutes::new(machine), Vec::new());
                let all = program.sets().iter().flat_map(|set| set.connections());
                for row in all {
                    if !routes.links(row.source, row.target, &mut links) {
                        let ends = format!("{} to {}", row.source, row.target);
                        return Ok(Err(format!("messages have no route from {ends}")));
                    }
                    links.clear();
                }
                *sets = program.sets().to_vec();
            }
            Messages::Steps(compiled) => {
                let compiler = StepCompiler::new(machine).max_plans(self.max_plans);
                match compiler.compile(program, &mut |_| ()) {
                    Ok(steps) => *compiled = Cow::Owned(steps),
                    Err(CompileError::Infeasible(infeasible)) => return Ok(Err(infeasible.reason)),
                    Err(CompileError::Input(error)) => return Ok(Err(error.to_string())),
                    Err(other) => return Err(other),
                }
            }
        }
        repair.recompiled += program.sets().iter().map(|set| set.len()).sum::<usize>();
        self.fabric.resume(machine.clone());
        self.machine = machine.clone();
        Ok(Ok(()))
    }

    fn now(&self) -> u64 {
        self.fabric.now()
    }

    fn faults_acted(&self) -> &[Option<u64>] {
        self.fabric.faults_acted()
    }
}
