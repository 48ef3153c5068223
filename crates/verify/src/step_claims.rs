//! The claims of a step schedule: proofs of its lower bounds, and limits for its prediction.
//!
//! # Lower bounds
//!
//! A bound of every plan is proved by the words that a cell must send and receive: it takes part in
//! at least one message in each direction in which it has words. A bound of direct plans, which send
//! each connection in one message from its source to its target, is proved by the number of cells
//! that each cell exchanges words with. A bound by links (average link, cuts, flow) is proved from its
//! witness as for phases, without context switches; it holds for plans that combine too, because
//! their words travel no shorter way. A connection of a cell to itself needs
//! no message.
//!
//! # The time of a cell
//!
//! | protocol | least clocks of the messages of a cell |
//! |---|---|
//! | standing, full duplex | the most of: the software of all messages; software and words that it sends, the last word of each message at the rate of the agent, as the next message can leave over another link, or of a message for each word if that is less; software and words that it receives, at the rate of the agent, as they can stand in its queues |
//! | standing, half duplex | software of all messages, words sent at the rate of the links (into a buffer), words received at that of the agent |
//! | rendezvous | software of both ends and words of all messages |
//!
//! In clusters, messages between nodes cost `network_overhead` more at each end. A plan that combines
//! may leave them to other cells, so only bounds of direct plans count them.
//!
//! The prediction is at least this for the messages of the plan, and at most the time of all messages
//! one after the other.

use conset_ir::{Binding, CellId, Duplex, Machine, Protocol, SetSteps};

use crate::claims::link_load;
use crate::rejection::{Findings, Location, Rule};
use crate::steps::one_by_one;

/// Checks the claims of a compiled set whose plan has been accepted.
pub(crate) fn check(set: &SetSteps, findings: &mut Findings) {
    check_bounds(set, findings);
    let Some(predicted) = set.predicted_clocks else { return };
    let mut refuse = |message: String| findings.add(Rule::Claim, Location::set(), || message);
    let mut loads = CellLoads::new(set.steps.machine());
    for message in set.steps.messages().iter() {
        loads.words(message.source, message.target, message.words().into(), true);
    }
    let (least, most) = (loads.most(), one_by_one(&set.steps));
    if u128::from(predicted) < least {
        refuse(format!(
            "the prediction is {predicted} clocks; the messages of a cell take {least}"
        ));
    }
    if u128::from(predicted) > most {
        refuse(format!(
            "the prediction is {predicted} clocks; one message after the other takes {most}"
        ));
    }
    if set.bounds.clocks > predicted {
        let claimed = set.bounds.clocks;
        refuse(format!(
            "the bound claims at least {claimed} clocks; the prediction is {predicted}"
        ));
    }
}

fn check_bounds(set: &SetSteps, findings: &mut Findings) {
    let bounds = &set.bounds;
    let mut refuse = |message: String| findings.add(Rule::Claim, Location::set(), || message);
    let proved = match (bounds.clocks_by, &bounds.clocks_witness) {
        (Binding::AgentLoad | Binding::Nothing, None) => Ok(of_connections(set, false)),
        (by, Some(witness)) => link_load(set.steps.machine(), set.steps.set(), by, witness),
        (_, None) => Ok(0),
    };
    match proved {
        Ok(proved) if proved >= bounds.clocks.into() => {}
        Ok(proved) => refuse(format!(
            "the bound claims at least {} clocks by {}; {proved} are proved",
            bounds.clocks, bounds.clocks_by
        )),
        Err(why) => refuse(format!("the witness of the bound of clocks is invalid: {why}")),
    }
    if bounds.direct_clocks > bounds.clocks {
        let (claimed, proved) = (bounds.direct_clocks, of_connections(set, true));
        if u128::from(claimed) > proved {
            refuse(format!(
                "the bound claims at least {claimed} clocks of direct plans; {proved} are proved"
            ));
        }
    }
}

/// The least clocks of the busiest cell, of direct plans or of any.
fn of_connections(set: &SetSteps, direct: bool) -> u128 {
    let mut loads = CellLoads::new(set.steps.machine());
    let mut pairs: Vec<(CellId, CellId, u32)> = set
        .steps
        .set()
        .connections()
        .iter()
        .filter(|c| c.source != c.target)
        .map(|c| (c.source, c.target, c.words))
        .collect();
    pairs.sort_unstable();
    for same in pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let words = same.iter().map(|pair| u128::from(pair.2)).sum();
        loads.words(same[0].0, same[0].1, words, direct);
    }
    loads.most()
}

/// What the messages of each cell cost.
struct CellLoads<'a> {
    machine: &'a Machine,
    cells: Vec<CellLoad>,
}

/// Messages and words of one cell, in both directions, and whether messages are counted.
#[derive(Clone, Copy, Default)]
struct CellLoad {
    messages: [u128; 2],
    words: [u128; 2],
    /// Clocks of messages of its own between nodes, beside those of all messages.
    overhead: [u128; 2],
}

impl<'a> CellLoads<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self { machine, cells: vec![CellLoad::default(); machine.agent_count()] }
    }

    /// Words from one cell to another, in a message of their own or in any.
    fn words(&mut self, source: CellId, target: CellId, words: u128, own: bool) {
        // Whether words that share a message go between nodes in one of the cell is not known.
        let overhead =
            u128::from(if own { self.machine.network_overhead(source, target) } else { 0 });
        for (direction, cell) in [source, target].into_iter().enumerate() {
            let load = &mut self.cells[cell.index()];
            load.overhead[direction] += overhead;
            load.words[direction] += words;
            let messages = &mut load.messages[direction];
            *messages = if own { *messages + 1 } else { 1 };
        }
    }

    /// The clocks of the busiest cell.
    fn most(&self) -> u128 {
        self.cells.iter().map(|cell| self.clocks(cell)).max().unwrap_or(0)
    }

    fn clocks(&self, cell: &CellLoad) -> u128 {
        let p = self.machine.parameters();
        let [link, _] = self.machine.link_clocks_range().map(u128::from);
        let access = u128::from(p.access_clocks_per_word);
        let software = [p.c_send, p.c_receive].map(u128::from);
        let extra = u128::from(p.message_extra_words);
        let words = [0, 1].map(|d| cell.words[d] + extra * cell.messages[d]);
        let [launches, receptions] =
            [0, 1].map(|d| cell.messages[d] * software[d] + cell.overhead[d]);
        match (p.protocol, p.duplex) {
            (Protocol::Rendezvous, _) => {
                let both = software[0] + software[1];
                let words = words[0] + words[1];
                let overhead = 2 * (cell.overhead[0] + cell.overhead[1]);
                (cell.messages[0] + cell.messages[1]) * both + overhead + words * access.max(link)
            }
            (Protocol::Standing, Duplex::Full) => {
                let sent = |messages: u128| {
                    let words = cell.words[0] + extra * messages;
                    let last = words.min(messages);
                    messages * software[0] + (words - last) * access.max(link) + last * access
                };
                let sent = sent(cell.messages[0]).min(sent(cell.words[0].max(cell.messages[0])));
                let sent = sent + cell.overhead[0];
                (launches + receptions).max(sent).max(receptions + words[1] * access)
            }
            (Protocol::Standing, Duplex::Half) => {
                launches + receptions + cell.words[0] * link + cell.words[1] * access
            }
        }
    }
}

/// The limits for the sums of clocks over all sets.
pub(crate) fn check_sums(sets: &[SetSteps], findings: &mut Findings) {
    let mut sums = [0u128; 2];
    for set in sets {
        findings.enter_set(set.steps.set().name());
        let parts =
            [set.bounds.clocks.max(set.bounds.direct_clocks), set.predicted_clocks.unwrap_or(0)];
        for ((sum, part), what) in
            sums.iter_mut().zip(parts).zip(["claimed as a bound", "predicted"])
        {
            *sum += u128::from(part);
            crate::clocks::check_sum(Rule::Claim, what, *sum, findings);
        }
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::Parameters;

    use super::*;

    /// Launches take 50 clocks, receptions 30, a word 3 at agents and 5 on links; 4 words more a message.
    fn machine(protocol: Protocol, duplex: Duplex) -> Machine {
        let parameters = Parameters {
            protocol,
            duplex,
            c_send: 50,
            c_receive: 30,
            message_extra_words: 4,
            access_clocks_per_word: 3,
            link_clocks_per_word: 5,
            ..Parameters::iwarp()
        };
        Machine::from_spec("mesh:2").unwrap().with_parameters(parameters).unwrap()
    }

    /// The clocks of both cells: two connections one way, of 10 and 7 words, and one back, of 6.
    fn clocks(machine: &Machine, own: bool) -> [u128; 2] {
        let mut loads = CellLoads::new(machine);
        for (source, target, words) in [(0, 1, 10), (0, 1, 7), (1, 0, 6)] {
            loads.words(CellId(source), CellId(target), words, own);
        }
        let cells = [0, 1].map(|cell| loads.clocks(&loads.cells[cell]));
        assert_eq!(loads.most(), cells[0].max(cells[1]));
        cells
    }

    #[test]
    fn messages_of_their_own_are_counted_one_by_one() {
        let both = 3 * (50 + 30) + (17 + 6 + 3 * 4) * 5;
        let rendezvous = machine(Protocol::Rendezvous, Duplex::Full);
        assert_eq!(clocks(&rendezvous, true), [both, both]);
        // The sender of two messages; the receiver of two, which takes longer than to send one.
        let full = machine(Protocol::Standing, Duplex::Full);
        let sent = 2 * 50 + (17 + 2 * 4 - 2) * 5 + 2 * 3;
        assert_eq!(clocks(&full, true), [sent, 2 * 30 + (17 + 2 * 4) * 3]);
        // The processor copies what it sends, and receives word by word.
        let half = machine(Protocol::Standing, Duplex::Half);
        let [first, second] = [2 * 50 + 30 + 17 * 5 + 6 * 3, 50 + 2 * 30 + 6 * 5 + 17 * 3];
        assert_eq!(clocks(&half, true), [first, second]);
    }

    #[test]
    fn words_of_any_messages_need_one_message_each_way() {
        let both = 2 * (50 + 30) + (17 + 6 + 2 * 4) * 5;
        let rendezvous = machine(Protocol::Rendezvous, Duplex::Full);
        assert_eq!(clocks(&rendezvous, false), [both, both]);
        let full = machine(Protocol::Standing, Duplex::Full);
        let sent = |words: u128| 50 + (words + 4 - 1) * 5 + 3;
        assert_eq!(clocks(&full, false), [sent(17), sent(6).max(30 + (17 + 4) * 3)]);
        // More messages can be faster if links are slow: the last word of each is not waited for.
        let mut parameters = full.parameters().clone();
        (parameters.c_send, parameters.message_extra_words) = (1, 0);
        parameters.link_clocks_per_word = 100;
        let slow = full.with_parameters(parameters).unwrap();
        assert_eq!(clocks(&slow, false), [17 + 17 * 3, 30 + 17 * 3]);
    }

    #[test]
    fn software_between_nodes_is_counted_at_each_end() {
        let parameters = Parameters {
            protocol: Protocol::Standing,
            duplex: Duplex::Full,
            c_send: 50,
            c_receive: 30,
            message_extra_words: 4,
            access_clocks_per_word: 3,
            link_clocks_per_word: 5,
            network_overhead: 11,
            ..Parameters::cluster()
        };
        let cluster = |protocol, duplex| {
            let parameters = Parameters { protocol, duplex, ..parameters.clone() };
            Machine::from_spec("cluster:2x2").unwrap().with_parameters(parameters).unwrap()
        };
        // c0 sends one message in its node, and two to c2, which sends one back.
        let clocks = |machine: &Machine, own| {
            let mut loads = CellLoads::new(machine);
            for (source, target, words) in [(0, 1, 8), (0, 2, 10), (0, 2, 7), (2, 0, 6)] {
                loads.words(CellId(source), CellId(target), words, own);
            }
            [0, 2].map(|cell: usize| loads.clocks(&loads.cells[cell]))
        };
        let full = cluster(Protocol::Standing, Duplex::Full);
        let sent = 3 * 50 + (25 + 3 * 4 - 3) * 5 + 3 * 3 + 2 * 11;
        let received = 2 * 30 + 2 * 11 + (17 + 2 * 4) * 3;
        assert_eq!(clocks(&full, true), [sent, received]);
        let half = cluster(Protocol::Standing, Duplex::Half);
        let software = [3 * 50 + 30 + 3 * 11, 50 + 2 * 30 + 3 * 11];
        let [first, second] = [25 * 5 + 6 * 3, 6 * 5 + 17 * 3];
        assert_eq!(clocks(&half, true), [software[0] + first, software[1] + second]);
        let rendezvous = cluster(Protocol::Rendezvous, Duplex::Full);
        let of = |messages: u128, words: u128| messages * (80 + 4 * 5) + 2 * 3 * 11 + words * 5;
        assert_eq!(clocks(&rendezvous, true), [of(4, 25 + 6), of(3, 17 + 6)]);
        // Words in any messages may share those of other cells.
        let in_any = |messages: u128, words: u128| messages * (80 + 4 * 5) + words * 5;
        assert_eq!(clocks(&rendezvous, false), [in_any(2, 25 + 6), in_any(2, 17 + 6)]);
    }
}
