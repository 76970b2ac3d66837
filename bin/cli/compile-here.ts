import { setFlagsFromString } from 'node:v8'

/**
 * From now on V8 compiles on this thread. At the end of a process Node waits for the threads that compile, and one of
 * them may wait for this one (nodejs/node#54918): on a busy machine one command in thirty never ended.
 */
export const compileHere = (): void => {
  setFlagsFromString('--no-concurrent-recompilation')
  setFlagsFromString('--no-concurrent-sparkplug')
}
