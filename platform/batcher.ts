/** Sends calls together: what comes while one sending is under way goes out with the next. */
export interface BatcherOptions<Call, Result> {
  /** Answers in the order of `calls`. */
  send(calls: readonly Call[]): Promise<readonly Result[]>
  /** Whether nothing was done for any of the calls, so that each may be sent again by itself. */
  mayRepeat(error: unknown): boolean
  /** Calls sent together, at most. */
  most: number
  /** A sending that takes longer is not waited for, unless that many are under way. */
  secondAfterMs: number
  mostUnderWay: number
}

interface Waiting<Call, Result> {
  call: Call
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Without load each call goes out at once, at the end of the event loop's turn. Under load they gather by themselves,
 * the more the slower the other side is, so that what a sending costs is shared. A failure is told to the call that
 * caused it, not to its companions.
 */
export const createBatcher = <Call, Result>(
  options: BatcherOptions<Call, Result>,
): ((call: Call) => Promise<Result>) => {
  const { send, mayRepeat, most, secondAfterMs, mostUnderWay } = options
  let waiting: Waiting<Call, Result>[] = []
  let underWay = 0
  let isDue = false
  let timer: NodeJS.Timeout | undefined

  const answer = async (together: readonly Waiting<Call, Result>[]) => {
    try {
      const results = await send(together.map(({ call }) => call))
      together.forEach(({ resolve }, index) => {
        resolve(results[index]!)
      })
    } catch (error) {
      if (together.length > 1 && mayRepeat(error)) await Promise.all(together.map((alone) => answer([alone])))
      else for (const { reject } of together) reject(error)
    }
  }

  const sendWaiting = async () => {
    clearTimeout(timer)
    timer = undefined
    const together = waiting.length <= most ? waiting : waiting.slice(0, most)
    waiting = waiting.length <= most ? [] : waiting.slice(most)
    underWay++
    await answer(together)
    underWay--
    consider()
  }

  const consider = () => {
    isDue = false
    if (waiting.length === 0) return
    if (underWay === 0 || (waiting.length >= most && underWay < mostUnderWay)) void sendWaiting()
    else if (underWay < mostUnderWay)
      timer ??= setTimeout(() => {
        timer = undefined
        if (waiting.length > 0 && underWay < mostUnderWay) void sendWaiting()
      }, secondAfterMs)
  }

  return (call) =>
    new Promise((resolve, reject) => {
      waiting.push({ call, resolve, reject })
      if (isDue) return
      isDue = true
      setImmediate(consider)
    })
}
