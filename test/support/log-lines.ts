/** Lines of a log at warn or above: what operators see, and what nobody else may fill. */
export const loudLines = (logged: string): { level: string; msg: string; err?: { stack?: string } }[] =>
  logged
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .filter(({ level }) => ['warn', 'error', 'fatal'].includes(level))

/** Runs it, and says how many loud lines with this message came meanwhile, and how many may: one a second. */
export const linesDuring = async (log: { logged(): string }, message: string, work: () => Promise<unknown>) => {
  const before = log.logged().length
  const started = performance.now()
  await work()
  const lines = loudLines(log.logged().slice(before))
  return {
    lines,
    count: lines.filter(({ msg }) => msg === message).length,
    most: 1 + Math.ceil((performance.now() - started) / 1_000),
  }
}
