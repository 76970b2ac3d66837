import { StartupError } from '../../platform/startup-error.ts'
import { watchPolicies } from '../../policies/decide.ts'
import { impersonationEntrypoint } from '../../policies/impersonation.ts'
import type { Service } from '../cli/serve.ts'
import { hearHangups } from './hangup.ts'

/**
 * The rules that decide about impersonation, followed as they change; SIGHUP reads them at once. Throws `StartupError`
 * when they cannot be used.
 */
export const openImpersonationPolicies = async (
  { lifecycle, logger, metrics }: Service,
  path: string,
  opaBin: string | undefined,
) => {
  const needed = [impersonationEntrypoint]
  const onHangup = hearHangups(lifecycle)
  const policies = await watchPolicies({ path, opaBin, logger, metrics, name: 'impersonation', needed }).catch(
    (cause: Error) => {
      throw new StartupError(`The impersonation policy at ${path} cannot be used: ${cause.message}`, {
        hint: 'Check POLICY_PATH; surrogate policy check shows what is wrong with rules.',
        cause,
      })
    },
  )
  lifecycle.onStop('impersonation policy', policies.close)
  if (!policies.current().entrypoints.includes(impersonationEntrypoint)) {
    throw new StartupError(`The policies at ${path} lack the entrypoint ${impersonationEntrypoint}.`, {
      hint: 'Begin with policies/impersonation.rego; docs/policies.md says how.',
    })
  }
  // Changed files are followed anyway; this is for who wants to say when, and for file systems whose times cannot be
  // trusted.
  onHangup(() => void policies.reload())
  return policies
}
