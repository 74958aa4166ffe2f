import type { Schema } from './decimal-fields.ts'
import * as T from './schema.ts'

/** A private keyword that no document shows. */
const keyword = '~link'

/**
 * Describes a field that holds the address of an operation; its path parameters are the fields of the same names
 * beside it. Operations do not fill it in: a door that has addresses does.
 */
export const Link = (operation: string) => T.String({ format: 'uri', [keyword]: operation })

/** Returns the operation that a link leads to, or undefined for any other schema. */
export function linkTarget(schema: Schema): string | undefined {
  const target = schema[keyword]
  return typeof target === 'string' ? target : undefined
}
