import { createTokenReports, type TokenReports } from '#kernel/money/token-security-reports.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { assessReply, source } from './wire.ts'

export const createRugCheck = ({ url, net }: { url: string; net: Net }): TokenReports =>
  createTokenReports(
    {
      source,
      covers: ({ family }) => family === 'solana',
      urlOf: (_chain, mint) => `${url}/v1/tokens/${encodeURIComponent(mint)}/report`,
      assess: assessReply,
    },
    { net },
  )
