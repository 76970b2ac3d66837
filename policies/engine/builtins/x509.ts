import type { HostBuiltin } from './index.ts'

export const x509Builtins: Record<string, HostBuiltin> = {}
