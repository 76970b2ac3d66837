import type { Adapter, Payload } from 'oidc-provider'

/** What oidc-provider keeps. Its own adapter is of the same kind, and warns at every start. */
export interface ProviderMemory {
  adapter(model: string): Adapter
  /** Moves everything into the past, as if so many seconds had gone by. */
  age(seconds: number): void
}

/** Members that are times, in seconds. */
const times = ['iat', 'exp', 'loginTs', 'consumed']

export const createProviderMemory = (): ProviderMemory => {
  const rows = new Map<string, Payload>()

  const adapter = (model: string): Adapter => {
    const keyOf = (id: string) => `${model} ${id}`
    const findBy = (member: 'uid' | 'userCode', value: string) =>
      [...rows].find(([key, payload]) => key.startsWith(`${model} `) && payload[member] === value)?.[1]
    return {
      upsert: async (id, payload) => void rows.set(keyOf(id), payload),
      find: async (id) => rows.get(keyOf(id)),
      findByUid: async (uid) => findBy('uid', uid),
      findByUserCode: async (userCode) => findBy('userCode', userCode),
      consume: async (id) => void Object.assign(rows.get(keyOf(id))!, { consumed: Math.floor(Date.now() / 1000) }),
      destroy: async (id) => void rows.delete(keyOf(id)),
      revokeByGrantId: async (grantId) => {
        for (const [key, payload] of rows) if (payload.grantId === grantId) rows.delete(key)
      },
    }
  }

  return {
    adapter,
    age(seconds) {
      for (const payload of rows.values())
        for (const name of times) {
          const value = payload[name]
          if (typeof value === 'number') payload[name] = value - seconds
        }
    },
  }
}
