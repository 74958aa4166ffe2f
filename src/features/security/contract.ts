import { setColumns } from '#kernel/contract/columns.ts'
import { group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { ChainId, ChainRefIn, Nullable, OneOf, RatioOrNull, Text, Time } from '#kernel/contract/wire-types.ts'
import { riskLevels, securityStatuses, securityVerdicts } from '#kernel/money/token-security.ts'

export const tokensMax = 50

const CheckedToken = T.Object(
  {
    chain_id: ChainRefIn('Chain of the token'),
    token_address: T.String({
      minLength: 1,
      maxLength: 64,
      description: 'Contract of the token, or its mint on Solana',
      examples: ['0x4ed4E862860beD51a9570b96d89aF5E1B0Efefed'],
    }),
  },
  { $id: 'TokenToCheck' },
)

const SecurityReason = T.Object(
  {
    code: T.String({ examples: ['sell_failed'] }),
    level: OneOf(riskLevels),
    message: Text,
    source: T.String({ description: 'Who found it: simulation, or the name of a service' }),
  },
  { $id: 'SecurityReason' },
)
setColumns(SecurityReason, [])

const SecurityResult = T.Object(
  {
    chain_id: ChainId,
    token_address: Text,
    status: OneOf(securityStatuses, {
      description:
        'passed: safe; flagged: risky; api_unavailable: nothing was proven; skipped: there was no time for it',
    }),
    verdict: OneOf(securityVerdicts, { description: 'The worst of all sources; unknown is not safe' }),
    allowed: T.Boolean({ description: 'True only where `status` is passed' }),
    provider: T.String({ description: 'The sources that gave a verdict, separated by commas' }),
    risk_level: OneOf(riskLevels),
    reasons: T.Array(SecurityReason),
    buy_tax: RatioOrNull,
    sell_tax: RatioOrNull,
    transfer_tax: RatioOrNull,
    is_honeypot: Nullable(T.Boolean({ description: 'It can be bought and not sold' })),
    score: Nullable(T.Number({ description: '0 to 100, higher is worse; given by services only' })),
    simulated_at_block: Nullable(
      T.String({ description: 'Block or slot of the simulation; a token can change with the next one' }),
    ),
    checked_at: Time,
  },
  { $id: 'SecurityResult' },
)
setColumns(SecurityResult, ['chain_id', 'token_address', 'verdict', 'risk_level', 'buy_tax', 'sell_tax'])

export const contract = group('security', 'Verdicts about tokens before they are bought.', {
  check: read('POST /v1/security/check', {
    summary: 'Check tokens before you buy them',
    mainTool: {
      text: 'Whether a token is safe to buy, or a scam or honeypot that nobody can sell. Take it before `swap_execute` into a token that you do not know.',
      fields: { tokens: '' },
    },
    description:
      'Use it before a swap into a token that you do not know. Each token is bought, transferred and sold in a simulation on its chain, or its mint is inspected on Solana; services that judge tokens are asked too, and the worst of all counts. `allowed` is true only for `passed`: what could not be simulated is never safe. It moves nothing and needs no wallet. A token can change right after a check, so swaps check again. Next: the swap, or `reasons` where `allowed` is false.',
    access: 'read',
    body: T.Object(
      { tokens: T.Array(CheckedToken, { minItems: 1, maxItems: tokensMax }) },
      {
        $id: 'SecurityCheckRequest',
        examples: [
          { tokens: [{ chain_id: '8453', token_address: '0x4ed4E862860beD51a9570b96d89aF5E1B0Efefed' }] },
        ],
      },
    ),
    output: T.Object(
      { all_passed: T.Boolean(), results: T.Array(SecurityResult) },
      { $id: 'SecurityCheckResponse' },
    ),
    points: ({ tokens }) => (Array.isArray(tokens) ? tokens.length : 1),
  }),
})
