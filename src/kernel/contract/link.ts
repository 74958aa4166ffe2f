import type { Schema } from './decimal-fields.ts'
import * as T from './schema.ts'

/** A keyword of ours that no document shows. */
const keyword = '~link'

/**
 * The address of an operation; its path parameters are the fields of that name beside the link. No operation answers a
 * link: a door that has addresses adds it.
 */
export const Link = (operation: string) => T.String({ format: 'uri', [keyword]: operation })

/** The operation that a link leads to; undefined for any other schema. */
export function linkTarget(schema: Schema): string | undefined {
  const target = schema[keyword]
  return typeof target === 'string' ? target : undefined
}
