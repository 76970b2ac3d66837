/** Who may have a role. */
export const holders = { User: 'People', MachineToMachine: 'Backends' } as const
