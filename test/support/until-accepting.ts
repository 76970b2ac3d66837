import { connect } from 'node:net'
import type { TestProcess } from './process.ts'
import { until } from './until.ts'

/** Waits until a program listens on a port of 127.0.0.1; rejects with what it printed when it ends instead. */
export const waitUntilAccepting = async (port: number, child: TestProcess, name: string): Promise<void> => {
  let ended = false
  void child.exited.then(() => {
    ended = true
  })
  await until(async () => {
    if (!ended && !(await accepts(port))) throw new Error(`${name} does not listen:\n${child.output()}`)
  })
  if (ended) throw new Error(`${name} did not start:\n${child.output()}`)
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
