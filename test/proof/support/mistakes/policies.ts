import type { MistakeSection } from './mistake.ts'

export const policies: MistakeSection = {
  title: 'Policy and kill switch',
  mistakes: [
    {
      mistake: 'Raising a limit beyond that of the operator',
      send: 'PUT /v1/policy',
      body: { per_day_usd: '1000000' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.per_day_usd',
        says: 'Input should be less than or equal to 100000',
      },
    },
    {
      mistake: 'Raising a limit, by an agent',
      send: 'PUT /v1/policy',
      body: { chat_per_day_usd: '5' },
      answer: {
        status: 403,
        code: 'step_up_required',
        says: 'Only a person can confirm this, and no person belongs to this agent: link it to one by `agents_link_code`',
      },
    },
    {
      mistake: 'A misspelt limit',
      send: 'PUT /v1/policy',
      body: { per_day_usdc: '100' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.per_day_usdc',
        says: 'Extra inputs are not permitted; did you mean `per_day_usd`?',
      },
    },
    {
      mistake: 'A chain by its name',
      send: 'PUT /v1/policy',
      body: { chains: ['base'] },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.chains.0',
        says: "String has the wrong form: Chain id as a string, such as '8453'",
      },
    },
    {
      mistake: 'A token without its chain',
      send: 'PUT /v1/policy',
      body: { tokens: ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'] },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.tokens.0',
        says: 'Input should be a valid dictionary: a JSON object with `chain_id`, `address`',
      },
    },
    {
      mistake: 'An address that is none',
      send: 'PUT /v1/policy',
      body: { tokens: [{ chain_id: '8453', address: '0x1234' }] },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.tokens.0.address',
        says: "String has the wrong form: Address on an EVM chain or Solana, or a market as `hl:perp:BTC`, such as '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'",
      },
    },
    {
      mistake: 'A token on a chain that is not served',
      send: 'PUT /v1/policy',
      body: { tokens: [{ chain_id: '10', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' }] },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.tokens.0.chain_id',
        says: 'Input should be one of the chains that are served: 1, 8453, 42161, 137, 7565164, 999',
      },
    },
    {
      mistake: 'Cancelling a change that is in effect',
      send: 'DELETE /v1/policy/changes/01890000-0000-7000-8000-000000000000',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such pending change; `policy_show` lists those that exist',
      },
    },
    {
      mistake: 'A recipient, by an agent',
      send: 'POST /v1/recipients',
      body: { chain_id: '8453', address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', label: 'Cold wallet' },
      answer: {
        status: 403,
        code: 'step_up_required',
        says: 'Only a person can confirm this, and no person belongs to this agent: link it to one by `agents_link_code`',
      },
    },
    {
      mistake: 'Sending to an address that nobody has allowed',
      send: 'POST /v1/wallets/transfer',
      body: {
        chain_id: '8453',
        token: 'USDC',
        amount: '1000000',
        recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      },
      answer: {
        status: 403,
        code: 'policy_denied',
        says: 'The policy denies this: 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 is no effective recipient; `recipients_list` lists yours; `policy_show` has the limits',
      },
    },
    {
      mistake: 'Sending to an address without its checksum',
      send: 'POST /v1/wallets/transfer',
      body: {
        chain_id: '8453',
        token: 'USDC',
        amount: '1000000',
        recipient: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.recipient',
        says: 'Input should be the address of a recipient, spelled as `recipients_list` has it',
      },
    },
    {
      mistake: 'More than the limit of a transaction',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '25001' },
      answer: {
        status: 403,
        code: 'policy_denied',
        says: 'The policy denies this: the value exceeds the cap of 25000 USD per transaction; `policy_show` has the limits',
      },
    },
    {
      mistake: 'A kill switch in text',
      send: 'POST /v1/kill',
      body: { on: 'true' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.on',
        says: 'Input should be a valid boolean: true or false without quotes',
      },
    },
    {
      mistake: 'A kill switch of everything',
      send: 'POST /v1/kill',
      body: { on: true, scope: 'global' },
      answer: { status: 422, code: 'validation', at: 'body.scope', says: "Input should be 'user'" },
    },
    {
      mistake: 'Opening under the kill switch',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5' },
      headers: { authorization: 'Bearer {paused_token}' },
      answer: {
        status: 403,
        code: 'trading_paused',
        says: 'Trading is paused by a kill switch since <time>: closes, cancels and withdrawals go on, and the person, on a page of this gateway, or the operator, resumes the rest',
      },
    },
    {
      mistake: 'Switching trading on again',
      send: 'POST /v1/kill',
      body: { on: false },
      headers: { authorization: 'Bearer {paused_token}' },
      answer: {
        status: 403,
        code: 'step_up_required',
        says: 'Only a person can confirm this, and no person belongs to this agent: link it to one by `agents_link_code`',
      },
    },
  ],
}
