import { faults } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'

/** Makes `/llms.txt` and `/skill.md`, which models read before their first call, from contracts and faults. */

type Documented = Pick<Operation, 'name' | 'group' | 'entry'>

const intro = 'A trading gateway for agents and people: wallets, swaps, yield, perpetual futures and spot.'

export function llmsText(operations: readonly Documented[], base: string): string {
  const sections = Object.entries(Object.groupBy(operations, ({ group }) => group)).map(
    ([group, ofGroup = []]) => `## ${group}\n${ofGroup.map(lineOf).join('\n')}`,
  )
  return `# Portico

> ${intro} Base address: ${base}

Every call that moves money becomes a durable task and runs once under its idempotency key. Amounts are decimal text.

## Documents
- [Skill](${base}/skill.md): how to sign in, call, wait and handle errors, with a program that runs
- [OpenAPI](${base}/openapi.json): every field of every operation
- [Errors](${base}/error-catalog.json): every code, and whether a repeat can help
- [Capabilities](${base}/capabilities): what is released here, with minimums and limits

${sections.join('\n\n')}
`
}

const lineOf = ({ name, entry }: Documented): string =>
  `- \`${entry.method} ${entry.path}\` (\`${name}\`${entry.access === 'public' ? ', public' : ''}): ${entry.summary}`

export function skillText(operations: readonly Documented[], base: string): string {
  const tasks = operations.filter(({ entry }) => entry.kind === 'task').map(({ name }) => `\`${name}\``)
  const codes = Object.entries(faults).map(
    ([code, { status, retryable, when }]) =>
      `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${when} |`,
  )
  return `---
name: portico
description: ${intro} Use it to read balances and markets and to move money through ${base}.
---
# Portico
## Rules
- Send \`Authorization: Bearer <token>\`. A token lasts minutes; sign in again before its end.
- Send an \`Idempotency-Key\` with every call that changes something, and REUSE it whenever you repeat the same intent, above all after a timeout.
- Amounts are decimal text such as \`"25.5"\`, never rounded numbers.
- A task ends as completed, failed or cancelled. Success is \`status: completed\` with \`outcome: executed\`. \`outcome: unknown\` is being looked up: keep polling, and never send again under another key.
- \`wait=true\` in the query blocks up to \`timeout\` seconds; afterwards the answer is the task as it stands.

Operations that make tasks: ${tasks.join(', ')}.

## A program that signs in and reads
\`\`\`js
${program(base)}\`\`\`
Continue with \`call('POST', '/v1/earn/deposit?wait=true', { amount_usdc: '25' })\`. ${base}/llms.txt lists every operation, ${base}/openapi.json its fields.

## Errors
| code | status | retryable | when |
|---|---|---|---|
${codes.join('\n')}
`
}

const program = (base: string): string => `import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const signed = (text) => sign(null, Buffer.from(text), privateKey).toString('base64')
let token

async function call(method, path, body, key = randomUUID()) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  if (token) headers.authorization = \`Bearer \${token}\`
  const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers }
  const reply = await fetch('${base}' + path, init)
  const answer = await reply.json()
  if (!reply.ok) throw new Error(\`\${reply.status} \${answer.code}: \${JSON.stringify(answer.detail)}\`)
  return answer
}

const public_key = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64')
const { nonce, challenge } = await call('POST', '/v1/auth/register', { public_key })
const { agent_id } = await call('POST', '/v1/auth/verify', { nonce, signature: signed(challenge) })
const timestamp = Date.now()
const signature = signed(\`\${agent_id}\${timestamp}\`)
token = (await call('POST', '/v1/auth/token', { agent_id, timestamp, signature })).token
const { wallets } = await call('GET', '/v1/wallets')
console.log(agent_id, wallets.length)
`
