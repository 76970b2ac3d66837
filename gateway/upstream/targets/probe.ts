import type { Pool } from 'undici'
import type { HealthSettings } from '../../config/settings/targets.ts'

/**
 * One check on a connection of its own, which says more than one that is open already. Resolves to what is wrong;
 * undefined: nothing. Aborts `abort` when it takes too long.
 */
export const probe = async (
  pool: Pool,
  { path, timeout, status }: HealthSettings,
  abort: AbortController,
): Promise<string | undefined> => {
  let late = false
  const timer = setTimeout(() => {
    late = true
    abort.abort()
  }, timeout).unref()
  try {
    const { statusCode, body } = await pool.request({
      path,
      method: 'GET',
      headers: { 'user-agent': 'surrogate-gateway' },
      reset: true,
      signal: abort.signal,
    })
    // What follows the head is not read.
    body.on('error', () => {})
    return status.includes(statusCode) ? undefined : `status ${statusCode}`
  } catch (error) {
    if (late) return `no answer within ${timeout} ms`
    return (error as NodeJS.ErrnoException).code ?? (error as Error).name
  } finally {
    clearTimeout(timer)
    await pool.destroy()
  }
}
