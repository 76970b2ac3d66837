/** What `/readyz` asks. A check answers `ok`, and may add a `detail` for people in either case. */
export type HealthCheck = () => Promise<HealthResult> | HealthResult
export interface HealthResult {
  ok: boolean
  detail?: string | undefined
}

export interface Health {
  /** One of the same name is replaced. */
  addCheck(name: string, check: HealthCheck): void
  removeCheck(name: string): void
  /** Checks whose names are known only when they are asked; one of the same name of `addCheck` goes before. */
  addChecks(read: () => Promise<Record<string, HealthResult>>): void
  /** From now on not ready, so that balancers send no new work while running requests finish. */
  drain(): void
  ready(): Promise<{ ok: boolean; checks: Record<string, HealthResult> }>
}

const checkTimeoutMs = 2_000

const answerOf = async (check: HealthCheck): Promise<HealthResult> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<HealthResult>((resolve) => {
    timer = setTimeout(resolve, checkTimeoutMs, { ok: false, detail: `no answer within ${checkTimeoutMs} ms` })
  })
  try {
    return await Promise.race([Promise.resolve().then(check), late])
  } catch {
    return { ok: false, detail: 'the check failed' }
  } finally {
    clearTimeout(timer)
  }
}

export const createHealth = (): Health => {
  const checks = new Map<string, HealthCheck>()
  const groups: (() => Promise<Record<string, HealthResult>>)[] = []
  let draining = false
  return {
    addCheck: (name, check) => void checks.set(name, check),
    removeCheck: (name) => void checks.delete(name),
    addChecks: (read) => void groups.push(read),
    drain: () => {
      draining = true
    },
    async ready() {
      const results = await Promise.all(
        [...checks].map(async ([name, check]) => [name, await answerOf(check)] as const),
      )
      for (const group of await Promise.all(groups.map((read) => read())))
        results.push(...Object.entries(group).filter(([name]) => !checks.has(name)))
      if (draining) results.push(['draining', { ok: false, detail: 'the process is stopping' }])
      return { ok: results.every(([, { ok }]) => ok), checks: Object.fromEntries(results) }
    },
  }
}
