import { CopyableText } from './copy.tsx'
import { Notice } from './notice.tsx'
import { Page, Section } from './page.tsx'

interface GatewayState {
  state: 'answers' | 'away' | 'refuses'
  because?: string | undefined
}

/** Which gateways are not heard, and what that means for the page. */
export const GatewayNotices = ({ gateways }: { gateways: Readonly<Record<string, GatewayState>> }) => {
  const missing = Object.entries(gateways).filter(([, { state }]) => state !== 'answers')
  if (missing.length === 0) return null
  return (
    <Notice kind="warn">
      {missing.map(([name, { state, because }]) => (
        <p key={name}>
          <strong>
            {name} {state === 'away' ? 'is away' : 'refuses the console'}
          </strong>
          {because ? `: ${because}` : '.'} What it has decided is missing here.
        </p>
      ))}
    </Notice>
  )
}

/** What to do where the console knows of no gateway. */
export const NoGateways = ({ title }: { title: string }) => (
  <Page title={title}>
    <Section title="No gateway yet" lead="The console asks the inspection listeners of gateways, and was told of none.">
      <p>Give each gateway one, for the audience of the console:</p>
      <CopyableText
        label="gateway.yaml"
        text={`inspection:\n  port: 9303\n  audience: ${location.origin}/inspection`}
      />
      <p>And name them to the issuer, by addresses that it reaches:</p>
      <CopyableText label="setting" text="CONSOLE_GATEWAYS=edge-1=http://127.0.0.1:9303" />
    </Section>
  </Page>
)
