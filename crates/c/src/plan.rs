//! Plans and trees for the exchanges and collectives of a run, made once and shared by its cells.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use conset::ir::convert::to_u32;
use conset_runtime::{Collectives, Plan, PlanError};

use crate::entry::{enter, enter_for};
use crate::handle::{self, Handle, Tagged, value};
use crate::image::ConsetImage;
use crate::layout::{ConsetLayout, cell_of, write_items};
use crate::memory::{text, write};
use crate::status::CallFault;

/// `conset_plan`.
pub type ConsetPlan = Handle<Arc<Plan>>;

impl Tagged for Arc<Plan> {
    const TAG: [u8; 8] = *b"csplan_1";
    const NAME: &'static str = "conset_plan";
}

/// `conset_trees`.
pub type ConsetTrees = Handle<Arc<Collectives>>;

impl Tagged for Arc<Collectives> {
    const TAG: [u8; 8] = *b"cstrees1";
    const NAME: &'static str = "conset_trees";
}

/// The plan by which a set exchanges vectors of a layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_new(
    image: *const ConsetImage,
    set: *const c_char,
    layout: *const ConsetLayout,
    block: usize,
    plan: *mut *mut ConsetPlan,
) -> c_int {
    enter("conset_plan_new", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let (image, set) = (value(image, "image")?.image(), text(set, "set")?);
            let layout = value(layout, "layout")?.clone();
            handle::give(plan, Arc::new(Plan::new(image, set, layout, block)?))
        }
    })
}

/// The set by which the plan exchanges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_set(plan: *const ConsetPlan, set: *mut u32) -> c_int {
    enter("conset_plan_set", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { write(set, "set", to_u32(value(plan, "plan")?.set())) }
    })
}

/// Words for each item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_block(plan: *const ConsetPlan) -> usize {
    enter_for("conset_plan_block", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(plan, "plan")? }.block())
    })
}

/// On how many cells each item of a cell is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_multiplicity(
    plan: *const ConsetPlan,
    cell: u32,
    copies: *mut u32,
    items: usize,
) -> c_int {
    enter("conset_plan_multiplicity", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let plan = value(plan, "plan")?;
            let found = plan.multiplicity(cell_of(plan.layout(), cell)?);
            write_items(found.into_iter(), (copies, items, "copies"))
        }
    })
}

/// Which items of a cell count as its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_owned(
    plan: *const ConsetPlan,
    cell: u32,
    owned: *mut c_int,
    items: usize,
) -> c_int {
    enter("conset_plan_owned", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let plan = value(plan, "plan")?;
            let found = plan.owned(cell_of(plan.layout(), cell)?);
            write_items(found.into_iter().map(c_int::from), (owned, items, "owned"))
        }
    })
}

/// Frees a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_free(plan: *mut ConsetPlan) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_plan_free", || unsafe { handle::free(plan) });
}

/// The trees of an image, for collectives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_new(
    image: *const ConsetImage,
    trees: *mut *mut ConsetTrees,
) -> c_int {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_trees_new", || unsafe { give_trees(image, Collectives::new, trees) })
}

/// The trees whose names begin with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_prefixed(
    image: *const ConsetImage,
    prefix: *const c_char,
    trees: *mut *mut ConsetTrees,
) -> c_int {
    enter("conset_trees_prefixed", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let prefix = text(prefix, "prefix")?;
            give_trees(image, |image| Collectives::prefixed(image, prefix), trees)
        }
    })
}

/// Trees of any names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_named(
    image: *const ConsetImage,
    reduce: *const c_char,
    broadcast: *const c_char,
    allreduce: *const c_char,
    trees: *mut *mut ConsetTrees,
) -> c_int {
    enter("conset_trees_named", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let (reduce, broadcast) = (text(reduce, "reduce")?, text(broadcast, "broadcast")?);
            let names = [reduce, broadcast, text(allreduce, "allreduce")?];
            give_trees(image, |image| Collectives::named(image, names), trees)
        }
    })
}

/// # Safety
/// The rules of `memory` hold for both pointers.
unsafe fn give_trees(
    image: *const ConsetImage,
    make: impl FnOnce(&Arc<conset::ir::Image>) -> Result<Collectives, PlanError>,
    trees: *mut *mut ConsetTrees,
) -> Result<(), CallFault> {
    // SAFETY: the caller's promise.
    unsafe { handle::give(trees, Arc::new(make(value(image, "image")?.image())?)) }
}

/// The cell that reductions end at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_root(trees: *const ConsetTrees, root: *mut u32) -> c_int {
    enter("conset_trees_root", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { write(root, "root", value(trees, "trees")?.root().0) }
    })
}

/// Words that the trees carry at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_words(trees: *const ConsetTrees) -> usize {
    enter_for("conset_trees_words", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(trees, "trees")? }.words())
    })
}

/// Frees trees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_free(trees: *mut ConsetTrees) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_trees_free", || unsafe { handle::free(trees) });
}
