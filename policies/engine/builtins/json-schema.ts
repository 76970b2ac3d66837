import type { HostBuiltin } from './index.ts'

export const jsonSchemaBuiltins: Record<string, HostBuiltin> = {}
