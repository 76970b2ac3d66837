import { readdirSync, readFileSync } from 'node:fs'

/**
 * CPU microseconds that libuv's threads of this process have used up to now, as the kernel's scheduler accounts them:
 * where passwords are hashed. Needs Linux.
 */
export const poolCpuMicros = (): number => {
  let nanoseconds = 0
  for (const thread of readdirSync('/proc/self/task')) {
    const folder = `/proc/self/task/${thread}`
    if (readFileSync(`${folder}/comm`, 'latin1').trim() !== 'libuv-worker') continue
    nanoseconds += Number(readFileSync(`${folder}/schedstat`, 'latin1').split(' ')[0])
  }
  return nanoseconds / 1000
}
