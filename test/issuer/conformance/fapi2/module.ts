import type { Fapi2 } from './parties.ts'

/** A module of the OpenID Foundation's plan, or why it does not apply. */
export type Fapi2Module = { proves: string; run(fapi2: Fapi2): Promise<void> } | { doesNotApply: string }

/** By their names without `fapi2-security-profile-final-`. */
export type Fapi2Modules = Readonly<Record<string, Fapi2Module>>
