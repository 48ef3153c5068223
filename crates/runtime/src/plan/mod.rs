//! Plans: a layout combined with a compiled set, for exchanging vectors.
//!
//! A [`Plan`] belongs to all cells. It is `Sync`, is made outside of the program, and every cell
//! exchanges with `&plan`. Its constructor has checked that each connection of the compiled set is
//! that of the layout, with `block` words for each item, and if the set has node lists, that they
//! are the ids of the layout.
//!
//! The order of operations at a target is fixed, so that results have the same bits on every
//! transport:
//!
//! * [`Cell::exchange_nodes`]: the current value first, then the connections in id order, each in
//!   the order of its list.
//! * [`Cell::combine_shared`], [`Cell::combine_owned`], by phases, by messages or nonblocking: the
//!   copies in the order of cell ids, with the value of the cell at its own position. All copies
//!   end equal.
//!
//! A single vector takes the shortest path of the transport: between threads it is read in place.
//! Packed words, of several vectors or of nonblocking exchanges, are placed where the transport
//! sends them from, or in buffers of the plan. There is one set of buffers for each exchange of a
//! cell in progress; they are made when first needed and reused afterwards.
//!
//! All cells exchange by the same plans in the same order; exchanges are collective like
//! [`Cell::exchange`].

mod combine;
mod nonblocking;
mod packing;

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId, ConnectionSet, Image};

use crate::cell::Cell;
use crate::error::{CellError, PlanError, PlanUse};
use crate::layout::Layout;
use crate::lists::{CellLists, Number, Op, Positions};
use crate::phase::SetRef;
use crate::port::{ArrivedRows, By, WireBuffers};
use crate::requests::next_serial;
use crate::word::Word;
use combine::Copies;
use packing::ExchangeLists;

/// How the vectors of one set are exchanged.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_runtime::ir::{Document, text};
/// use conset_runtime::{Layout, Op, Plan, World};
///
/// // Both cells have node 11.
/// let layout = Layout::from_shared_ids(&[[10, 11], [11, 12]])?;
/// // The image of `layout.set("halo", 1)`, here in text form; the facade crate compiles it.
/// # let file = "conset image 1
/// # machine ring:2
/// # set halo
/// #   x0 c0 -> c1 words 1 nodes 11
/// #   x1 c1 -> c0 words 1 nodes 11
/// #   phase p0
/// #     cell c0
/// #       ch0 from x0 to c1/ch0
/// #       ch1 from c1 to x1
/// #       send x0 ch0 words 1 start 0
/// #       receive x1 ch1 words 1 start 1
/// #     cell c1
/// #       ch0 from c0 to x0
/// #       ch1 from x1 to c0/ch1
/// #       receive x0 ch0 words 1 start 0
/// #       send x1 ch1 words 1 start 1
/// # ";
/// let Document::Image(image) = text::parse("halo.cset", file)? else { unreachable!() };
/// let image = Arc::new(image);
/// let plan = Plan::new(&image, "halo", layout, 1)?;
/// let (vectors, _report) = World::new(image).try_run(|cell| {
///     let mut x = [1.0, 2.0];
///     cell.combine_shared(&plan, Op::Add, &mut x)?;
///     Ok(x)
/// })?;
/// assert_eq!(vectors, [[1.0, 3.0], [3.0, 2.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Plan {
    /// Tells plans apart.
    serial: u64,
    image: Arc<Image>,
    set: usize,
    block: usize,
    layout: Arc<Layout>,
    cells: Vec<CellPlan>,
}

/// One cell's share of a plan.
#[derive(Debug, Default)]
struct CellPlan {
    /// The connections that start here and those that end here, in id order.
    outgoing: Vec<ConnectionId>,
    incoming: Vec<ConnectionId>,
    /// What the transport exchanges a vector by; made when first needed.
    lists: OnceLock<CellLists>,
    /// Where the copies of each shared item are; made when first needed.
    copies: OnceLock<Copies>,
    /// WireBuffers that are not in use.
    free: Mutex<Vec<WireBuffers>>,
}

impl Plan {
    /// The plan by which set `set` of `image` exchanges vectors laid out by `layout`, `block`
    /// words for each item.
    ///
    /// # Errors
    /// No such set, or a set that is not this layout's with this block, or that its image would
    /// not deliver.
    pub fn new(
        image: &Arc<Image>,
        set: impl SetRef,
        layout: impl Into<Arc<Layout>>,
        block: usize,
    ) -> Result<Self, PlanError> {
        let (row, layout) = (find_set(image, set)?, layout.into());
        let compiled = &image.sets()[row];
        if let Some(kind) = conset_fabric::coverage_fault(compiled) {
            return Err(PlanError::Image { set: compiled.set.name().to_owned(), kind });
        }
        check_cells(image, &layout)?;
        check_set(&compiled.set, &layout, block)?;
        let mut cells = Vec::new();
        cells.resize_with(image.machine().cell_count(), CellPlan::default);
        for (id, connection) in compiled.set.iter() {
            cells[connection.source.index()].outgoing.push(id);
            cells[connection.target.index()].incoming.push(id);
        }
        check_entries(&layout, &cells)?;
        Ok(Self { serial: next_serial(), image: image.clone(), set: row, block, layout, cells })
    }

    /// The layout.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The set's row in the image.
    pub fn set(&self) -> usize {
        self.set
    }

    /// Words for each item, of all vectors that are exchanged at a time.
    pub fn block(&self) -> usize {
        self.block
    }

    /// [`Layout::multiplicity`] in the time of the cell's own entries.
    pub fn multiplicity(&self, cell: CellId) -> Vec<u32> {
        let incoming = self.cells.get(cell.index()).map_or(&[][..], |plan| &plan.incoming);
        self.layout.count_copies(cell, incoming)
    }

    /// [`Layout::owned`] in the time of the cell's own entries.
    pub fn owned(&self, cell: CellId) -> Vec<bool> {
        let incoming = self.cells.get(cell.index()).map_or(&[][..], |plan| &plan.incoming);
        self.layout.mask_owned(cell, incoming)
    }

    fn cell_lists(&self, cell: CellId) -> &CellLists {
        let plan = &self.cells[cell.index()];
        plan.lists.get_or_init(|| {
            let send = Positions::new(plan.outgoing.iter().map(|&x| self.layout.send_of(x)));
            let receive = Positions::new(plan.incoming.iter().map(|&x| self.layout.receive_of(x)));
            CellLists::new(send, receive, self.block)
        })
    }

    fn name(&self) -> String {
        self.image.sets()[self.set].set.name().to_owned()
    }

    /// Buffers for one exchange of a cell, of words of so many bytes.
    fn take_buffers(&self, cell: CellId, size: usize) -> WireBuffers {
        let plan = &self.cells[cell.index()];
        let free = plan.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut buffers) = free {
            buffers.set_size(size);
            return buffers;
        }
        let words = |&x: &ConnectionId| self.layout.send_of(x).len() * self.block;
        WireBuffers::new(plan.outgoing.iter().map(words), plan.incoming.iter().map(words), size)
    }

    fn give_back(&self, cell: CellId, buffers: WireBuffers) {
        let free = &self.cells[cell.index()].free;
        free.lock().unwrap_or_else(PoisonError::into_inner).push(buffers);
    }

    /// Checks that a cell's vectors are what the plan exchanges.
    fn check<W: Word, V: AsRef<[W]>>(&self, cell: &Cell<'_>, vectors: &[V]) -> Result<(), PlanUse> {
        if !std::ptr::eq(cell.image(), &raw const *self.image) {
            return Err(PlanUse::Image { set: self.name() });
        }
        let items = self.layout.items_of(cell.id());
        let mut block = 0;
        for (vector, words) in vectors.iter().map(|vector| vector.as_ref().len()).enumerate() {
            if items == 0 && words > 0 || items > 0 && !words.is_multiple_of(items) {
                return Err(PlanUse::Vector { set: self.name(), vector, words, items });
            }
            block += words.checked_div(items).unwrap_or(0);
        }
        if items > 0 && block != self.block {
            return Err(PlanUse::Block { set: self.name(), expected: self.block, found: block });
        }
        Ok(())
    }
}

/// The row of a set.
pub(crate) fn find_set(image: &Image, set: impl SetRef) -> Result<usize, PlanError> {
    set.find(image).ok_or_else(|| {
        let names: Vec<&str> = image.sets().iter().map(|set| set.set.name()).collect();
        let sets = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        PlanError::NoSet { name: format!("{set:?}"), sets }
    })
}

fn check_cells(image: &Image, layout: &Layout) -> Result<(), PlanError> {
    let agents = image.machine().agent_count();
    let mut beyond = (agents..layout.cell_count()).map(CellId::from_index);
    match beyond.find(|&cell| layout.items_of(cell) > 0) {
        Some(cell) => Err(PlanError::Cells { cell, cells: agents }),
        None => Ok(()),
    }
}

/// A cell's entries are numbered by u32.
fn check_entries(layout: &Layout, cells: &[CellPlan]) -> Result<(), PlanError> {
    for (cell, plan) in cells.iter().enumerate() {
        for connections in [&plan.outgoing, &plan.incoming] {
            let entries = connections.iter().map(|&x| layout.send_of(x).len()).sum();
            if u32::try_from(entries).is_err() {
                return Err(PlanError::Entries { cell: CellId::from_index(cell), entries });
            }
        }
    }
    Ok(())
}

fn check_set(set: &ConnectionSet, layout: &Layout, block: usize) -> Result<(), PlanError> {
    let name = || set.name().to_owned();
    if block == 0 {
        return Err(PlanError::NoBlock);
    }
    if set.len() != layout.len() {
        let (expected, found) = (layout.len(), set.len());
        return Err(PlanError::Connections { set: name(), expected, found });
    }
    let compare_nodes = set.nodes().filter(|_| layout.has_small_ids());
    for (connection, c) in set.iter() {
        let ends = layout.ends_of(connection);
        let items = layout.send_of(connection).len();
        if (c.source, c.target) != ends || items.checked_mul(block) != Some(index(c.words)) {
            return Err(PlanError::Connection {
                set: name(),
                connection,
                expected: format!("{} to {}, {items} items of {block} words", ends.0, ends.1),
                found: format!("{} to {}, {} words", c.source, c.target, c.words),
            });
        }
        if let Some(nodes) = compare_nodes {
            let words = nodes.of(connection).chunks(block);
            let same = |(&id, words): (&u64, &[u32])| words.iter().all(|&n| u64::from(n) == id);
            if !layout.ids_of(connection).iter().zip(words).all(same) {
                return Err(PlanError::Nodes { set: name(), connection });
            }
        }
    }
    Ok(())
}

impl Cell<'_> {
    /// Exchanges a vector by a plan, together with all other cells: the values of each connection
    /// are copied to the items of its target, or combined with them.
    ///
    /// `x` has `block` words for each item of this cell in the layout, stored item by item.
    ///
    /// # Errors
    /// A plan of another image, a vector of another size; and as [`Cell::exchange`].
    #[track_caller]
    pub fn exchange_nodes<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.check_plan(plan, &[&*x])?;
        self.wait_all()?;
        let lists = plan.cell_lists(self.id());
        self.exchange_lists(plan.set, lists, op, x)
    }

    /// [`Cell::exchange_nodes`] by the compiled phases or by messages ([`Cell::exchange_by`]); the
    /// results have the same bits.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`].
    #[track_caller]
    pub fn exchange_nodes_by<W: Number>(
        &mut self,
        by: By,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        match by {
            By::Phases => self.exchange_nodes(plan, op, x),
            By::Messages => self.exchange_many_by(by, plan, op, &mut [x]),
        }
    }

    /// Exchanges several vectors at a time. The words of all vectors for one item are the block
    /// of the plan, one vector after the other. Each vector has the same number of words for
    /// each item on all cells.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`].
    #[track_caller]
    pub fn exchange_many<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        vectors: &mut [&mut [W]],
    ) -> Result<(), CellError> {
        self.exchange_many_by(By::Phases, plan, op, vectors)
    }

    /// [`Cell::exchange_many`] by the compiled phases or by messages.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`].
    #[track_caller]
    pub fn exchange_many_by<W: Number>(
        &mut self,
        by: By,
        plan: &Plan,
        op: Op,
        vectors: &mut [&mut [W]],
    ) -> Result<(), CellError> {
        self.exchange_buffers(plan, by, vectors, |rows, lists, vectors| {
            for row in 0..lists.incoming.len() {
                lists.unpack(op, vectors, (row, 0), rows.row(row));
            }
        })
    }

    /// Exchanges the words of vectors, and hands those that came in to `read`.
    #[track_caller]
    fn exchange_buffers<W: Number>(
        &mut self,
        plan: &Plan,
        by: By,
        vectors: &mut [&mut [W]],
        mut read: impl FnMut(&ArrivedRows<'_>, &ExchangeLists<'_>, &mut [&mut [W]]),
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.check_plan(plan, vectors)?;
        self.wait_all()?;
        let mut buffers = plan.take_buffers(self.id(), size_of::<W>());
        let lists = plan.lists(self.id());
        // The transport packs before it reads, one after the other.
        let vectors = RefCell::new(vectors);
        // On an error the buffers are dropped: the run has ended.
        self.exchange_packed(
            (by, plan.set, size_of::<W>()),
            &mut buffers,
            &mut |at, wire| lists.pack(&vectors.borrow(), at, wire),
            &mut |rows| read(rows, &lists, &mut vectors.borrow_mut()),
        )?;
        plan.give_back(self.id(), buffers);
        Ok(())
    }

    fn check_plan<W: Word, V: AsRef<[W]>>(
        &mut self,
        plan: &Plan,
        vectors: &[V],
    ) -> Result<(), CellError> {
        match plan.check(self, vectors) {
            Ok(()) => Ok(()),
            Err(problem) => self.fail(CellError::Plan(problem)),
        }
    }
}
