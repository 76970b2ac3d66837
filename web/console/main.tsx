import './design/tokens.css'
import './design/base.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { createQueryClient } from './api/queries.ts'
import { App } from './app.tsx'
import { applyTheme } from './shell/theme.ts'

applyTheme()
createRoot(document.querySelector('#console')!).render(
  <StrictMode>
    <QueryClientProvider client={createQueryClient()}>
      <Router base="/console">
        <App />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
)
