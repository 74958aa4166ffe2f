import { Ajv, type ValidateFunction } from 'ajv'
import type { Static, TSchema } from './schema.ts'

let ajv: Ajv | undefined
const compiled = new Map<TSchema, ValidateFunction>()

/** Whether a foreign value fits a schema, which is compiled on first use. */
export function fits<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  let check = compiled.get(schema)
  if (!check) {
    // In strict mode ajv would demand a length limit for a tuple beside `additionalItems`.
    ajv ??= new Ajv({ strict: false })
    check = ajv.compile(schema)
    compiled.set(schema, check)
  }
  return check(value)
}
