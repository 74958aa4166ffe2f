import type { Schema } from './decimal-fields.ts'
import * as T from './schema.ts'

/** The schema keyword of a link, which no published document shows. */
const keyword = '~link'

/**
 * Describes a field that contains the address of an operation; the path parameters of the address are the fields of the
 * same names beside it. Operations leave the field empty, and a transport that has addresses, such as HTTP, fills it
 * in.
 */
export const Link = (operation: string) => T.String({ format: 'uri', [keyword]: operation })

/** Returns the operation that a link leads to, or undefined for any other schema. */
export function linkTarget(schema: Schema): string | undefined {
  const target = schema[keyword]
  return typeof target === 'string' ? target : undefined
}
