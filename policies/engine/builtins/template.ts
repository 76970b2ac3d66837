import type { HostBuiltin } from './index.ts'

export const templateBuiltins: Record<string, HostBuiltin> = {}
