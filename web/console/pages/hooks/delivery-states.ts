import type { Calls } from '../../generated/api.ts'

type State = Calls['listHookDeliveries']['answer'][number]['state']

/** States of a delivery in words. */
export const states: Readonly<Record<State, string>> = {
  pending: 'waiting',
  sending: 'being sent',
  succeeded: 'delivered',
  retrying: 'retrying',
  held: 'held back',
  dead: 'given up',
  cancelled: 'cancelled',
}

const kinds: Readonly<Partial<Record<State, 'good' | 'warn' | 'bad'>>> = {
  succeeded: 'good',
  retrying: 'warn',
  held: 'warn',
  dead: 'bad',
}

export const stateOf = (state: State) => kinds[state] ?? 'plain'
