//! Plans and trees: what exchanges and collectives of a run need, made once and shared by its cells.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use conset_runtime::{Collectives, Plan};

use crate::entry::enter;
use crate::image::ConsetImage;
use crate::layout::ConsetLayout;
use crate::memory::{self, Handle, Tagged, text, value};

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
            let (image, set) = (value(image, "image")?, text(set, "set")?);
            let layout = value(layout, "layout")?.clone();
            memory::give(plan, Arc::new(Plan::new(image, set, layout, block)?))
        }
    })
}

/// Frees a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_plan_free(plan: *mut ConsetPlan) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_plan_free", || unsafe { memory::free(plan) });
}

/// The trees of an image, for collectives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_new(
    image: *const ConsetImage,
    trees: *mut *mut ConsetTrees,
) -> c_int {
    enter("conset_trees_new", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let image = value(image, "image")?;
            memory::give(trees, Arc::new(Collectives::new(image)?))
        }
    })
}

/// Frees trees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_trees_free(trees: *mut ConsetTrees) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_trees_free", || unsafe { memory::free(trees) });
}
