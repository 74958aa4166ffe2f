import type { Invoke } from '#durable/accept/operation-call.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { askerOf } from '#kernel/task/fresh-sign-in.ts'
import type { JsonObject, NumberSources } from '#kernel/wire/json.ts'
import { inputReaders, type ReadFlatInput } from './input-validation.ts'
import { filterBySchema } from './schema-filter.ts'
import { type ObjectSchema, plainInputSchemaOf } from './tool-schema.ts'

/**
 * Calls that a part of the gateway makes for a user. Their input is validated and their answer filtered like those of a
 * call from outside.
 */

export type InnerCall = {
  operation: Operation
  input: JsonObject
  caller: Caller
  key?: string
  keyMadeAt?: Date
  signal: AbortSignal
}
export type InnerCalls = {
  /** Throws the `validation` fault that a call from outside, such as over HTTP, would get for this input. */
  check(operation: Operation, input: JsonObject): void
  inputSchemaOf(operation: Operation): ObjectSchema
  /**
   * Throws the fault with which the gateway would refuse the call now. It accepts nothing and changes nothing: a task is
   * only admitted, and of an act only the part is run that reads before its transaction.
   */
  admit(call: Pick<InnerCall, 'operation' | 'input' | 'caller'>): Promise<void>
  /** Returns the answer of the call. A task is accepted, but its end is not awaited. */
  call(call: InnerCall): Promise<unknown>
}

type TaskRun = Extract<Operation, { entry: { kind: 'task' } }>['run']
type ActRun = { prepare?: (input: object, caller: Caller) => Promise<unknown> }

export function createInnerCalls(execute: Invoke): InnerCalls {
  // These inputs were not parsed from JSON text, so none of their numbers has a source text.
  const sources: NumberSources = new WeakMap()
  const readersOf = inputReaders(sources)
  const known = new Map<string, ReadFlatInput>()
  const readerOf = (operation: Operation): ReadFlatInput => {
    const reader = known.get(operation.name) ?? readersOf(operation).readFlatInput
    known.set(operation.name, reader)
    return reader
  }
  const schemas = new Map<string, ObjectSchema>()
  return {
    inputSchemaOf({ name, entry }) {
      const schema = schemas.get(name) ?? plainInputSchemaOf(name, entry)
      schemas.set(name, schema)
      return schema
    },
    async admit({ operation, input: given, caller }) {
      const { input } = readerOf(operation)(structuredClone(given))
      const { entry, run } = operation
      if (entry.kind === 'task') await (run as TaskRun).admit(input, askerOf(caller))
      else if (entry.kind === 'act') await (run as ActRun).prepare?.(input, caller)
    },
    check: (operation, input) => void readerOf(operation)(structuredClone(input)),
    async call({ operation, input: given, caller, key, keyMadeAt, signal }) {
      const { access, kind } = operation.entry
      if (access !== 'public' && !(caller.scopes as ReadonlySet<string>).has(access))
        throw new Fault('insufficient_scope', `The caller lacks the scope ${access}`, {
          extras: { scope: access },
        })
      const { input } = readerOf(operation)(structuredClone(given))
      const reply = await execute({
        operation,
        input,
        caller,
        options: {
          wait: false,
          timeoutMs: 0,
          ...(key !== undefined && { key }),
          ...(keyMadeAt && { keyMadeAt }),
        },
        request: { id: 'inner', address: 'inner', signal },
      })
      if (reply.kind === 'stream' || kind === 'stream') throw new Error(`${operation.name} is a stream`)
      return filterBySchema(plainSchema(operation.entry.output), reply.body)
    },
  }
}
