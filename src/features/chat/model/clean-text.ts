import { isRecord, type Json } from '#kernel/json.ts'

/** Text of strangers on its way to a model, and text of a model on its way to a reader. */

const namingFields = new Set(['name', 'symbol', 'title', 'label', 'display_name'])
const nameCharactersMax = 64

/** Without what is invisible, or turns the direction of a text. */
const visible = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/[\t\n\r\u2028\u2029]+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, '')

export function cleanValue(value: Json, field = ''): Json {
  if (typeof value === 'string') {
    const text = visible(value)
    return namingFields.has(field) ? text.slice(0, nameCharactersMax) : text
  }
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, field))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [visible(name), cleanValue(each as Json, name)]),
  )
}

const address = /(?:\b[a-z][a-z0-9+.-]*:)?\/\/[^\s)\]>"']+/gi
const bareAddress = /\bwww\.[^\s)\]>"']+/gi
const removed = '(link removed)'

/** An answer loads nothing from elsewhere and leads nowhere: an address could carry what was read. */
export const cleanAnswer = (text: string): string =>
  text
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\[([^\]]*)\]\((?![^)]*\blink removed\b)[^)]*\)/g, '$1')
    .replace(/<\/?[a-z][^>]*>/gi, '')
    .replace(address, removed)
    .replace(bareAddress, removed)
