import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import type { Calls } from '../../generated/api.ts'

/** For which API a token is when the request names none. */
export const DefaultResource = ({ resource }: { resource: Calls['getResource']['answer'] }) => {
  const change = useChange('setDefaultResource')
  const { id, name, isDefault } = resource
  const input = { params: { id }, body: { isDefault: !isDefault } }
  const set = () =>
    change.mutate(input, {
      onSuccess: () => announce(isDefault ? 'There is no default resource.' : `${name} is the default resource.`),
    })
  return (
    <Section
      title="Default resource"
      lead={
        isDefault
          ? 'Tokens are for this API when a request names none.'
          : 'Makes this API the audience of tokens when a request names none, instead of whichever is it now.'
      }
      actions={
        <>
          <CopyAsCurl operation="setDefaultResource" input={input} />
          <Allowed operation="setDefaultResource">
            <Button isPending={change.isPending} onPress={set}>
              {isDefault ? 'No longer the default' : 'Make it the default'}
            </Button>
          </Allowed>
        </>
      }
    >
      <ProblemNotice error={change.error} />
    </Section>
  )
}
