import type { Pool } from 'undici'
import type { HealthSettings } from '../../config/settings/targets.ts'

/**
 * One check on a connection of its own, which says more than one that is open already. Resolves to what is wrong;
 * undefined: nothing.
 */
export const probe = async (
  pool: Pool,
  { path, timeout, status }: HealthSettings,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const late = AbortSignal.timeout(timeout)
  try {
    const { statusCode, body } = await pool.request({
      path,
      method: 'GET',
      headers: { 'user-agent': 'surrogate-gateway' },
      reset: true,
      signal: AbortSignal.any([signal, late]),
    })
    // What follows the head is not read.
    body.on('error', () => {})
    return status.includes(statusCode) ? undefined : `status ${statusCode}`
  } catch (error) {
    if (late.aborted) return `no answer within ${timeout} ms`
    return (error as NodeJS.ErrnoException).code ?? (error as Error).name
  } finally {
    await pool.destroy()
  }
}
