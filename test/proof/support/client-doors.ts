/** The SDK and the command line as doors: an operation by its name, one flat record, a credential. */
import { runCli } from '#edges/cli/cli.ts'
import { type Command, commands, type Field } from '#edges/cli/commands.ts'
import type { FaultView } from '#invoke/fault-view.ts'
import { type InputIssue, PorticoError, portico } from '#sdk/sdk.ts'
import type { Door, DoorReply } from '../../harness/in-process-door.ts'
import { withoutAddresses } from './http-door.ts'

type Fields = Record<string, unknown>
type Failure = Pick<PorticoError, 'status' | 'code' | 'detail' | 'retryable' | 'outcome' | 'extras'> & {
  errors: readonly InputIssue[]
}

const byName = new Map(commands.map((command) => [command.name, command]))
const tokenOf = (authorization: string | undefined) => authorization?.replace(/^Bearer /, '')

export const sdkDoor =
  (baseUrl: string): Door =>
  async (name, input, { authorization, key, itemsMax = 1 } = {}) => {
    const token = tokenOf(authorization)
    const client = portico({ baseUrl, maxRetries: 0, ...(token && { auth: { token } }) })
    try {
      if (byName.get(name)?.isStream && input.stream !== false) {
        const read: unknown[] = []
        for await (const event of client.follow(name, input)) if (read.push(event) >= itemsMax) break
        return answered(read, baseUrl, { replayed: false, key: undefined })
      }
      const given = key === undefined ? {} : { idempotencyKey: key }
      const { data, replayed, idempotency_key } = await client.call(name, input, given).withResponse()
      return answered(data, baseUrl, {
        replayed,
        key: idempotency_key === null ? undefined : keyOf(input, { key, answer: data }),
      })
    } catch (error) {
      if (error instanceof PorticoError) return refused(error)
      throw error
    }
  }

export const cliDoor =
  (baseUrl: string): Door =>
  async (name, input, { authorization, key, itemsMax = 1 } = {}) => {
    const command = byName.get(name)!
    const isStream = command.isStream && input.stream !== false
    let [out, err] = ['', '']
    const words = [
      ...wordsOf(command, input),
      '--base-url',
      baseUrl,
      '--retries=0',
      ...(key === undefined || !command.isKeyed ? [] : [`--idempotency-key=${key}`]),
      ...(isStream ? [`--items=${itemsMax}`] : []),
    ]
    const token = tokenOf(authorization)
    const code = await runCli(words, {
      env: { XDG_CONFIG_HOME: '/nowhere', ...(token && { PORTICO_TOKEN: token }) },
      home: '/nowhere',
      out: (text) => {
        out += text
      },
      err: (text) => {
        err += text
      },
      isInteractive: false,
      openBrowser: () => {},
      signal: AbortSignal.timeout(120_000),
    })
    if (out === '') return refused(JSON.parse(err) as Failure)
    if (code !== 0 && code < 10) throw new Error(`exit code ${code} with an answer: ${err}`)
    const result: unknown = isStream
      ? out
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
      : JSON.parse(out)
    return answered(result, baseUrl, {
      replayed: err.includes('an earlier call'),
      key: command.isKeyed ? keyOf(input, { key, answer: result }) : undefined,
    })
  }

/** By flags where they can say it, and the rest as a document. */
function wordsOf({ group, verb, fields }: Command, input: Fields): string[] {
  const rest: Fields = { ...input }
  const flags: string[] = []
  const paths: string[] = []
  for (const field of fields) {
    const value = rest[field.name]
    if (value === undefined) continue
    if (field.isPath) paths.push(String(value))
    else if (isSayable(field, value)) for (const each of [value].flat()) flags.push(`--${field.flag}=${each}`)
    else continue
    delete rest[field.name]
  }
  if (rest.wait === true && Number.isInteger(rest.timeout)) {
    flags.push('--wait', `--timeout=${rest.timeout}`)
    delete rest.wait
    delete rest.timeout
  }
  return [group, verb, ...paths, ...flags, '--json', JSON.stringify(rest)]
}

function isSayable({ type, isList }: Field, value: unknown): boolean {
  const values = isList && Array.isArray(value) ? value : [value]
  if (isList !== Array.isArray(value) || values.length === 0) return false
  return values.every(
    (each) =>
      (type === 'text' && typeof each === 'string' && each !== '') ||
      (type === 'integer' && Number.isSafeInteger(each)) ||
      (type === 'boolean' && typeof each === 'boolean'),
  )
}

const answered = (
  result: unknown,
  baseUrl: string,
  { replayed, key }: { replayed: boolean; key: string | undefined },
): DoorReply => ({ status: 200, result: withoutAddresses(result, baseUrl), replayed, key })

function refused({ status, code, detail, retryable, outcome, errors, extras }: Failure): DoorReply {
  const issues = errors.map(({ loc: [location, ...path], ...issue }) => ({ location, path, ...issue }))
  const fault = {
    status,
    code,
    message: detail,
    retryable,
    extras: { ...extras, ...(outcome !== undefined && { outcome }) },
    issues,
  }
  return { status, fault: fault as FaultView }
}

/** The key of the request, or the one of the task or chat: HTTP names it too where the client has made it. */
function keyOf(
  input: Fields,
  { key, answer }: { key: string | undefined; answer: unknown },
): string | undefined {
  const { idempotency_key: made, chat_id, task_id = chat_id } = (answer ?? {}) as Fields
  // An act that waits is a task without a key of its own.
  return (key ?? input.idempotency_key ?? (task_id === undefined ? undefined : made) ?? undefined) as
    | string
    | undefined
}
