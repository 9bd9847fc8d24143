//! `firesteel-componentize MODULE COMPONENT`: makes a component of a core module. `scripts/plugins` calls it, so that building a plugin needs
//! nothing but Rust.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [module, component] = args.as_slice() else {
        eprintln!("usage: firesteel-componentize MODULE COMPONENT");
        return ExitCode::from(2);
    };
    let made = || -> Result<(), Box<dyn std::error::Error>> {
        let module = std::fs::read(module).map_err(|e| format!("{module}: {e}"))?;
        let encoded = wit_component::ComponentEncoder::default().module(&module)?.validate(true).encode()?;
        std::fs::write(component, encoded).map_err(|e| format!("{component}: {e}"))?;
        Ok(())
    };
    match made() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("firesteel-componentize: {error}");
            ExitCode::FAILURE
        }
    }
}
