import { AppError } from './problem.ts'

/** Runs `work` when its turn has come, first come first served. Throws 503 `server.unavailable` when too many are waiting. */
export type InTurn = <Result>(work: () => Promise<Result>) => Promise<Result>

/** For work that takes more than its share of something, such as threads or connections: at most `concurrency` of it runs at a time. */
export const createTurns = ({ concurrency, maxWaiting }: { concurrency: number; maxWaiting: number }): InTurn => {
  let running = 0
  const waiting: (() => void)[] = []

  const enter = async () => {
    if (running < concurrency) {
      running++
      return
    }
    if (waiting.length >= maxWaiting) throw new AppError('server.unavailable', { headers: { 'Retry-After': '5' } })
    // Whoever leaves hands over its place, so `running` stays.
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else running--
  }

  return async (work) => {
    await enter()
    try {
      return await work()
    } finally {
      leave()
    }
  }
}
