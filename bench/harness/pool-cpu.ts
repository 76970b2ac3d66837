import { readdirSync, readFileSync } from 'node:fs'

/** libuv's, and those of our issuer: as long as the kernel keeps names. */
const names = new Set(['libuv-worker', 'passwords'])

/**
 * CPU microseconds that the threads of this process in which passwords are hashed have used up to now, as the kernel's
 * scheduler accounts them. Needs Linux.
 */
export const poolCpuMicros = (): number => {
  let nanoseconds = 0
  for (const thread of readdirSync('/proc/self/task')) {
    const folder = `/proc/self/task/${thread}`
    if (!names.has(readFileSync(`${folder}/comm`, 'latin1').trim())) continue
    nanoseconds += Number(readFileSync(`${folder}/schedstat`, 'latin1').split(' ')[0])
  }
  return nanoseconds / 1000
}
