import { isRecord, type Json } from '#kernel/wire/json.ts'

/** This module cleans text by strangers before a model reads it, and text by a model before a person reads it. */

const namingFields = new Set(['name', 'symbol', 'title', 'label', 'display_name'])
const nameCharactersMax = 64

/** Removes characters that are invisible or change the direction of a text. */
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

const removed = '(link removed)'
/** Patterns of links and of addresses. Their lengths are bounded, so that no text takes long to match. */
const rest = '[^\\s)\\]>"\']'
const addresses = [
  // A browser takes a backslash, or a single slash after a scheme, for two slashes.
  `(?:\\b[a-z][a-z0-9+.-]{0,30}:)?[\\\\/]{2,}${rest}+`,
  `\\b[a-z][a-z0-9+.-]{1,30}:[\\\\/]${rest}*`,
  `\\b(?:https?|ftp|wss?|file|mailto|javascript|vbscript|data|blob|tel|sms|xmpp|ipfs):${rest}+`,
  `\\bwww\\.${rest}+`,
  `[\\w.+-]{1,64}@(?:[a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}\\b`,
  `\\b(?:[a-z0-9][a-z0-9-]{0,62}\\.){1,8}[a-z]{2,24}(?:[/?#]|:\\d)${rest}+`,
].map((source) => new RegExp(source, 'gi'))
const hidden = /\p{Cf}|\u034f|\u115f|\u1160|\u3164/gu
/** Entities that a reader of Markdown or HTML would decode. */
const entity =
  /&(?=#[x\d]|(?:sol|bsol|colon|period|commat|quest|excl|lt|gt|lpar|rpar|lsqb|rsqb|lbrack|rbrack|tab|newline|amp);)/gi
/** Characters that an earlier or later sentence could complete to a link, an image or a tag. */
const opening = /!(?=\[)|(?<=^|\])(?=[([:])|(?<=<)(?=[a-z/!?]|$)/gi

/** Lets an answer load nothing from elsewhere and link nowhere, because an address could leak what was read. */
export function cleanAnswer(text: string): string {
  let cleaned = text
    .replace(hidden, '')
    .replace(entity, '& ')
    .replace(/!?\[([^\]]{0,300})\]\([^)]{0,300}\)/g, '$1')
    .replace(/<\/?[a-z][^>]{0,300}>/gi, '')
  for (const address of addresses) cleaned = cleaned.replace(address, removed)
  return cleaned.replace(opening, ' ')
}
