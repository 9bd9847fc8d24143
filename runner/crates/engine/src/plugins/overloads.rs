//! Which of the functions of one name a call means, and what its arguments are cast to.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{Result, plan_err};
use firesteel_session::ports::plugins::{Function, Plugin};

use crate::plugins::{Around, Current};

/// The functions of one name, of one plugin and kind.
#[derive(Clone)]
pub struct Overloads {
    /// Whose they are.
    pub plugin: Arc<dyn Plugin>,
    /// Their name.
    pub name: String,
    current: Current,
    /// Their places in the plugin's description.
    of: Vec<usize>,
}

impl Overloads {
    /// These.
    pub fn new(plugin: Arc<dyn Plugin>, current: Current, name: &str, of: Vec<usize>) -> Overloads {
        Overloads { plugin, name: name.to_owned(), current, of }
    }

    /// One of them.
    pub fn function(&self, n: usize) -> &Function {
        &self.plugin.about().functions[n]
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Function> {
        self.of.iter().map(|n| self.function(*n))
    }

    /// The statement that is at work.
    pub fn around(&self) -> Arc<Around> {
        self.current.get()
    }

    /// The one that takes arguments of these types with the fewest casts, and what they are cast to.
    ///
    /// # Errors
    /// None does; the message has those that there are.
    pub fn choose(&self, types: &[DataType]) -> Result<(usize, Vec<DataType>)> {
        let fits = self.of.iter().filter_map(|n| {
            let wanted = parameters(self.function(*n), types.len())?;
            let costs = types.iter().zip(&wanted).map(|(from, to)| cost(from, to));
            Some((costs.sum::<Option<u32>>()?, *n, wanted))
        });
        if let Some((_, n, wanted)) = fits.min_by_key(|(cost, n, _)| (*cost, *n)) {
            // Known when the statement is planned.
            self.around().touched(self.plugin.about(), &format!("function {}", self.name));
            return Ok((n, wanted));
        }
        let shown: Vec<String> = self.all().map(signature).collect();
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        plan_err!("`{}` takes no ({}); there is {}", self.name, types.join(", "), shown.join(", "))
    }
}

fn signature(function: &Function) -> String {
    let mut types: Vec<String> = function.parameters.iter().map(|(_, t)| t.to_string()).collect();
    if function.variadic {
        types.push("…".to_owned());
    }
    format!("`{}({})`", function.name, types.join(", "))
}

/// The types of so many arguments.
fn parameters(function: &Function, count: usize) -> Option<Vec<DataType>> {
    let own: Vec<DataType> = function.parameters.iter().map(|(_, t)| t.clone()).collect();
    if !function.variadic {
        return (own.len() == count).then_some(own);
    }
    let (last, fixed) = own.split_last()?;
    (count >= fixed.len())
        .then(|| fixed.iter().cloned().chain(std::iter::repeat_n(last.clone(), count - fixed.len())).collect())
}

/// What it costs to cast, if SQL would.
fn cost(from: &DataType, to: &DataType) -> Option<u32> {
    use DataType as T;
    let text = |t: &T| matches!(t, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let bytes = |t: &T| matches!(t, T::Binary | T::LargeBinary | T::BinaryView);
    match (from, to) {
        (from, to) if from == to => Some(0),
        (T::Dictionary(_, from), to) => cost(from, to),
        (from, to) if text(from) && text(to) || bytes(from) && bytes(to) => Some(0),
        (T::Null, _) => Some(1),
        (from, to) if from.is_integer() && to.is_integer() => Some(if from.size() <= to.size() { 1 } else { 3 }),
        (from, T::Float64) if from.is_numeric() => Some(2),
        (from, to) if from.is_numeric() && to.is_numeric() => Some(4),
        (T::Timestamp(..), T::Timestamp(..)) => Some(1),
        (T::Date32 | T::Date64, T::Timestamp(..) | T::Date32 | T::Date64) => Some(2),
        (from, to) if text(to) && (from.is_numeric() || from.is_temporal() || *from == T::Boolean) => Some(10),
        // Literals of dates and times are written as text.
        (from, T::Timestamp(..) | T::Date32) if text(from) => Some(11),
        (T::List(from), T::List(to)) => cost(from.data_type(), to.data_type()),
        _ => None,
    }
}

impl fmt::Debug for Overloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.plugin.about().label())
    }
}

impl PartialEq for Overloads {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.plugin, &other.plugin)
    }
}

impl Eq for Overloads {}

impl Hash for Overloads {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
