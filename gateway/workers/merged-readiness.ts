import type { HealthResult } from '../../platform/health.ts'

/** What a worker says of itself; nothing when it did not answer in time. */
interface Answer {
  worker: number
  answer: { ok: boolean; checks: Readonly<Record<string, HealthResult>> } | undefined
}

/**
 * The checks of all workers as those of one gateway: good when they are in every worker. A detail that is not the same
 * in all says whose it is. Beside them `gateway workers`: whether all `size` of them serve.
 */
export const mergeReadiness = (answers: readonly Answer[], size: number): Record<string, HealthResult> => {
  const serving = answers.filter(({ answer }) => answer?.ok).length
  const silent = answers.filter(({ answer }) => !answer)
  const named = answers.flatMap(({ worker, answer }) =>
    Object.entries(answer?.checks ?? {}).map(([name, result]) => ({ name, worker, result })),
  )
  const byName = Map.groupBy(named, ({ name }) => name)
  return {
    'gateway workers': {
      ok: serving === size,
      detail: [`${serving} of ${size} serve`, ...silent.map(({ worker }) => `worker ${worker} does not answer`)].join(
        '; ',
      ),
    },
    ...Object.fromEntries([...byName].map(([name, of]) => [name, merged(of)])),
  }
}

const merged = (of: readonly { worker: number; result: HealthResult }[]): HealthResult => {
  const ok = of.every(({ result }) => result.ok)
  const told = of.filter(({ result }) => result.detail !== undefined)
  const details = new Set(told.map(({ result }) => result.detail))
  if (details.size === 0) return { ok }
  if (details.size === 1) return { ok, detail: told[0]!.result.detail }
  return { ok, detail: told.map(({ worker, result }) => `worker ${worker}: ${result.detail}`).join('; ') }
}
