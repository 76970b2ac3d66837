/** What `/inspect` of the admin listener tells, as JSON: a member for each part that has something to say. */
export interface Inspection {
  /** Asked for each request, and may be a promise; one of the same name is replaced. */
  add(name: string, read: () => unknown): void
  read(): Promise<Record<string, unknown>>
}

export const createInspection = (): Inspection => {
  const parts = new Map<string, () => unknown>()
  return {
    add: (name, read) => void parts.set(name, read),
    async read() {
      const told = [...parts].map(async ([name, read]) => [name, await read()] as const)
      return Object.fromEntries(await Promise.all(told))
    },
  }
}
