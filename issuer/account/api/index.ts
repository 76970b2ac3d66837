import type { Route } from '../../base/route.ts'
import type { AccountOperations } from '../operations/index.ts'
import { myAccountRoutes } from './my-account.ts'
import { myFactorRoutes } from './my-factors.ts'
import { myImpersonationRoutes } from './my-impersonations.ts'
import { verificationRoutes } from './verifications.ts'

/** The Account API: a new room is a line. */
const rooms = [myAccountRoutes, myFactorRoutes, verificationRoutes, myImpersonationRoutes]

export const accountRoutes = (operations: AccountOperations): Route[] => rooms.flatMap((room) => room(operations))
