import { StartupError } from '../../platform/startup-error.ts'
import { watchPolicies } from '../../policies/decide.ts'
import { impersonationEntrypoint } from '../../policies/impersonation.ts'
import { createSignInShadow } from '../../policies/shadow.ts'
import { signInEntrypoint } from '../../policies/sign-in.ts'
import type { Service } from '../cli/serve.ts'
import { hearHangups } from './hangup.ts'

/**
 * The rules that decide about impersonation and, where they do, about signing in, followed as they change; SIGHUP reads
 * them at once. Throws `StartupError` when they cannot be used.
 */
export const openImpersonationPolicies = async (
  { lifecycle, logger, metrics }: Service,
  path: string,
  opaBin: string | undefined,
  units?: number,
) => {
  const needed = [impersonationEntrypoint]
  const onHangup = hearHangups(lifecycle)
  // Folders from before there were sign-in rules go on working: then the shipped ones decide.
  const optional = [signInEntrypoint]
  const source = { path, units, opaBin, logger, metrics, name: 'impersonation', needed, optional }
  const policies = await watchPolicies(source).catch((cause: Error) => {
    throw new StartupError(`The policies at ${path} cannot be used: ${cause.message}`, {
      hint: 'Check POLICY_PATH; surrogate policy check shows what is wrong with rules.',
      cause,
    })
  })
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

/** Rules about signing in that are only compared: those that cannot be used are told in the log, and are no error. */
export const openSignInShadow = async (
  { lifecycle, logger, metrics }: Service,
  path: string,
  opaBin: string | undefined,
) => {
  const shadow = await createSignInShadow({ path, opaBin, logger, metrics })
  lifecycle.onStop('shadow rules about signing in', shadow.close)
  return shadow
}
