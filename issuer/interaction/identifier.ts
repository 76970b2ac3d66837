// The directory reads them too.
export { type Identifier, readIdentifier } from '../directory/users/identifier.ts'
