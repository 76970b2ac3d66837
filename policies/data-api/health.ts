import type { Logger } from '../../platform/logger.ts'
import type { PolicySet } from '../policy-set.ts'
import { evaluate } from './evaluate.ts'

export interface HealthAnswer {
  status: number
  body: { error?: string }
}

const well: HealthAnswer = { status: 200, body: {} }
const unwell = (error: string): HealthAnswer => ({ status: 500, body: { error } })

/**
 * `GET /health`: 200 while the server takes requests: it never does without policies, so `?bundles` and `?plugins`
 * ask nothing more. `GET /health/<name>`: whether the entrypoint `system/health/<name>` is true, as in OPA.
 */
export const answerHealth = (
  { policies, logger }: { policies: () => PolicySet; logger: Logger },
  name: string,
): HealthAnswer => {
  if (name === '') return well
  const path = `system/health/${name}`
  const check = `health check (data.${path.replaceAll('/', '.')})`
  const set = policies()
  if (!set.entrypoints.includes(path)) return unwell(`${check} was undefined`)
  try {
    const input = { plugins_ready: true, plugin_state: {} }
    const result = evaluate(set, { path, entrypoint: path, members: [] }, input, logger)
    if (result === undefined) return unwell(`${check} was undefined`)
    return result === true ? well : unwell(`${check} returned unexpected value`)
  } catch {
    return unwell(`${check} came to no answer`)
  }
}
