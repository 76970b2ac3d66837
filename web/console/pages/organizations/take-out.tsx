import type { Input, OperationId } from '../../api/operations.ts'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'

interface TakeOutProps<Id extends OperationId> {
  name: string
  operation: Id
  input: Input<Id>
}

/** Ends a membership; the person or application stays. */
export const TakeOut = <Id extends OperationId>({ name, operation, input }: TakeOutProps<Id>) => {
  const change = useChange(operation)
  const confirm = () => change.mutate(input, { onSuccess: () => announce(`${name} belongs to it no more.`) })
  return (
    <>
      <Allowed operation={operation}>
        <Button kind="plain" icon="cross" label={`Take out ${name}`} isPending={change.isPending} onPress={confirm} />
      </Allowed>
      <ProblemNotice error={change.error} />
    </>
  )
}
