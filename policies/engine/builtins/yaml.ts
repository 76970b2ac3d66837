import type { HostBuiltin } from './index.ts'

export const yamlBuiltins: Record<string, HostBuiltin> = {}
