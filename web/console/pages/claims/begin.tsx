import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import type { TokenType } from './kinds.ts'

/** It adds nothing, so it may be there while the real one is written. */
const script = `const getCustomJwtClaims = async ({ token, context, environmentVariables, api }) => {
  return {}
}
`

/** Where there is no script. */
export const Begin = ({ tokenType }: { tokenType: TokenType }) => {
  const make = useChange('putClaimsScript')
  const input = { params: { tokenType }, body: { script } }
  return (
    <Section
      title="There is no script"
      lead="Tokens are issued as they are. A script begins as one that adds nothing; try it on real people before you save what it does."
    >
      <ProblemNotice error={make.error} />
      <div>
        <Allowed operation="putClaimsScript">
          <Button kind="main" icon="plus" isPending={make.isPending} onPress={() => make.mutate(input)}>
            Begin with an empty script
          </Button>
        </Allowed>
        <CopyAsCurl operation="putClaimsScript" input={input} />
      </div>
    </Section>
  )
}
