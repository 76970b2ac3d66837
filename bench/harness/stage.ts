import { type BenchProcess, type Cpu, startProcess } from './process.ts'

/** Everything one comparison starts. It is stopped in reverse order, also when a later part does not start. */
export type Stage = {
  /** Starts a child and runs its `start` call. */
  start: <Result>(
    file: URL,
    cpu: Cpu,
    settings?: object,
    flags?: readonly string[],
  ) => Promise<{ process: BenchProcess; result: Result }>
  /** Starts a child made by `runServer`. */
  serve: (file: URL, cpu: Cpu, settings: object) => Promise<Server>
  onStop: (release: () => Promise<unknown>) => void
  stop: () => Promise<void>
}

export type Server = { process: BenchProcess; port: number }

export const createStage = (): Stage => {
  const releases: (() => Promise<unknown>)[] = []
  const start: Stage['start'] = async (file, cpu, settings = {}, flags = []) => {
    const process = startProcess(file, cpu, flags)
    releases.push(process.stop)
    return { process, result: await process.call('start', settings) }
  }
  return {
    start,
    serve: async (file, cpu, settings) => {
      const { process, result: port } = await start<number>(file, cpu, settings)
      return { process, port }
    },
    onStop: (release) => void releases.push(release),
    stop: async () => {
      for (const release of releases.splice(0).reverse()) await release()
    },
  }
}
