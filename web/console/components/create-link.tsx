import type { Input, OperationId } from '../api/operations.ts'
import { Allowed } from './allowed.tsx'
import { LinkButton } from './link-button.tsx'

/** How something new is made: on the page at `path`, and by the API with `input` as an example. */
export interface Creation<Id extends OperationId> {
  operation: Id
  /** `New application`. */
  label: string
  path: string
  input: Input<Id>
}

/** The way there, for those who may. */
export const CreateLink = <Id extends OperationId>({ operation, label, path }: Creation<Id>) => (
  <Allowed operation={operation}>
    <LinkButton kind="main" icon="plus" path={path}>
      {label}
    </LinkButton>
  </Allowed>
)
