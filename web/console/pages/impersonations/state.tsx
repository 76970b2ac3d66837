import { Badge } from '../../components/page.tsx'
import type { Calls } from '../../generated/api.ts'

export type Session = Calls['getImpersonation']['answer']
export type Request = Calls['getImpersonationRequest']['answer']

export const isGoingOn = ({ endedAt, expiresAt }: Session, now = Date.now()): boolean =>
  endedAt === null && expiresAt > now

export const StateOfSession = ({ session }: { session: Session }) => {
  if (isGoingOn(session)) return <Badge kind="warn">going on</Badge>
  return <Badge>{session.endedAt === null ? 'expired' : 'ended'}</Badge>
}

export const requestStates = {
  pending: 'waiting',
  approved: 'approved',
  refused: 'refused',
  expired: 'expired',
  used: 'used',
} as const

const kinds = { pending: 'warn', approved: 'good', refused: 'bad', expired: 'plain', used: 'plain' } as const

export const StateOfRequest = ({ status }: Pick<Request, 'status'>) => (
  <Badge kind={kinds[status]}>{requestStates[status]}</Badge>
)
