import { stripVTControlCharacters } from 'node:util'

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const

/** Ways to set off text; each gives it back as it is where there are no colours. */
export type Paint = Readonly<Record<keyof typeof codes, (text: string) => string>>

/** Colours for a terminal, unless NO_COLOR says otherwise (https://no-color.org); for anything else, none. */
export function paintFor(
  out: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>> = process.env,
): Paint {
  const isColoured = out.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
  const inColour = (code: number) => (text: string) => (isColoured ? `\u001B[${code}m${text}\u001B[0m` : text)
  return {
    bold: inColour(codes.bold),
    dim: inColour(codes.dim),
    red: inColour(codes.red),
    green: inColour(codes.green),
    yellow: inColour(codes.yellow),
  }
}

/** Text from the cluster, fit for a terminal: on one line and without control characters. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
}
