import { Component, type ReactNode } from 'react'
import { Button } from '../components/button.tsx'
import { ProblemNotice } from '../components/notice.tsx'

/** A page that fails leaves the others as they are. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {}

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === undefined) return this.props.children
    return (
      <>
        <ProblemNotice error={this.state.error} />
        <p>
          <Button onPress={() => location.reload()}>Load it again</Button>
        </p>
      </>
    )
  }
}
