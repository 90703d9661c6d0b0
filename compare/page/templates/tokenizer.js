// Tokenizers in the browser: the same ids as the Python that trained them, from the embedded base tokens and merges.
"use strict";

// Python's patterns (tokenizer/pretokenize.py) in JavaScript's dialect. \s differs between the two (U+FEFF, U+0085), so
// white space is the Unicode property that the regex module means. The possessive quantifiers are plain here: what
// follows them can never match what they would give back. Case folding adds the long s to the contractions.
const SPACE = "\\p{White_Space}";
const PATTERNS = {
  space: ` ?[^${SPACE}]+|${SPACE}+(?![^${SPACE}])|${SPACE}+`,
  gpt2:
    `'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+` + `|${SPACE}+(?![^${SPACE}])|${SPACE}+`,
  gpt4:
    `'(?:[sSdDmMtT\\u017F]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}` +
    `| ?[^${SPACE}\\p{L}\\p{N}]+[\\r\\n]*|${SPACE}*[\\r\\n]|${SPACE}+(?![^${SPACE}])|${SPACE}+`,
};

function pretokenize(text, pattern) {
  if (pattern === "none") return text ? [text] : [];
  return text.match(new RegExp(PATTERNS[pattern], "gu")) || [];
}

// GPT-2's spelling of bytes: printable Latin-1 stands for itself, the rest is numbered from U+0100.
function byteCharacters() {
  const characters = [];
  let unprintable = 0;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    characters.push(String.fromCodePoint(printable ? byte : 256 + unprintable++));
  }
  return characters;
}

class BrowserTokenizer {
  // spec: {name, kind, split_pattern, base: the base tokens one after the other, merges: [left, right, left, …] as ids}
  constructor(spec) {
    this.name = spec.name;
    this.kind = spec.kind;
    this.splitPattern = spec.split_pattern;
    this.vocabSize = spec.vocab_size;
    this.isBytes = spec.kind === "byte" || spec.kind === "byte_bpe";
    const base = Array.from(spec.base);
    this.numBase = base.length;
    if (this.isBytes) {
      const byteOf = new Map(byteCharacters().map((character, byte) => [character, byte]));
      this.raw = base.map((character) => [byteOf.get(character)]);
      this.idOfByte = new Int32Array(256);
      this.raw.forEach(([byte], id) => (this.idOfByte[byte] = id));
    } else {
      this.raw = base;
      this.idOfCharacter = new Map(base.map((character, id) => [character, id]));
    }
    this.merges = spec.merges;
    this.rankOf = new Map();
    for (let rank = 0; 2 * rank < spec.merges.length; rank++) {
      const left = spec.merges[2 * rank];
      const right = spec.merges[2 * rank + 1];
      this.rankOf.set(this.key(left, right), rank);
      this.raw.push(this.isBytes ? this.raw[left].concat(this.raw[right]) : this.raw[left] + this.raw[right]);
    }
  }

  key(left, right) {
    return left * 4194304 + right; // ids are below 2^22, so the pair is one exact number
  }

  // Rank of a pair of ids; -1: no such merge. An unknown character (id null) merges with nothing.
  rank(left, right) {
    if (left === null || right === null) return -1;
    const rank = this.rankOf.get(this.key(left, right));
    return rank === undefined ? -1 : rank;
  }

  // The base symbols of one pretoken: {id, text}, where an unknown character has id null.
  symbols(piece) {
    if (this.isBytes) return Array.from(new TextEncoder().encode(piece), (byte) => this.symbol(this.idOfByte[byte]));
    return Array.from(piece, (character) => {
      const id = this.idOfCharacter.get(character);
      return id === undefined ? { id: null, raw: character } : this.symbol(id);
    });
  }

  symbol(id) {
    return { id, raw: this.raw[id] };
  }

  // [{id, raw}] of a text. Throws RangeError for a lone surrogate, as Python refuses it.
  encode(text) {
    refuseLoneSurrogate(text);
    return pretokenize(text, this.splitPattern).flatMap((piece) => this.mergeAll(this.symbols(piece)));
  }

  // Merge the pair of lowest rank, the leftmost first, until none is left: a heap over a linked list, so that long
  // pieces stay fast. A merge can only make pairs of higher rank, so this equals one pass for every merge in order.
  mergeAll(symbols) {
    const length = symbols.length;
    const next = symbols.map((_, index) => index + 1);
    const previous = symbols.map((_, index) => index - 1);
    const heap = new PairHeap();
    const offer = (left) => {
      if (left < 0 || next[left] >= length) return;
      const rank = this.rank(symbols[left].id, symbols[next[left]].id);
      if (rank >= 0) heap.push(rank, left);
    };
    for (let index = 0; index < length - 1; index++) offer(index);
    for (let pair = heap.pop(); pair !== null; pair = heap.pop()) {
      const [rank, left] = pair;
      const right = next[left];
      const isStale = symbols[left] === null || right >= length;
      if (isStale || this.rank(symbols[left].id, symbols[right].id) !== rank) continue;
      symbols[left] = this.symbol(this.numBase + rank);
      symbols[right] = null;
      next[left] = next[right];
      if (next[right] < length) previous[next[right]] = left;
      offer(previous[left]);
      offer(left);
    }
    return symbols.filter((symbol) => symbol !== null);
  }

  // Every state on the way from base symbols to tokens, one replacement each:
  // [{pieces: [[symbol, …] for each pretoken], merge: null | {rank, piece, index}}]; `merge` is what made the state.
  steps(text) {
    refuseLoneSurrogate(text);
    let pieces = pretokenize(text, this.splitPattern).map((piece) => this.symbols(piece));
    const states = [{ pieces, merge: null }];
    for (let best = this.lowest(pieces); best !== null; best = this.lowest(pieces)) {
      pieces = pieces.map((piece, number) => {
        if (number !== best.piece) return piece;
        const merged = this.symbol(this.numBase + best.rank);
        return [...piece.slice(0, best.index), merged, ...piece.slice(best.index + 2)];
      });
      states.push({ pieces, merge: best });
    }
    return states;
  }

  lowest(pieces) {
    let best = null;
    pieces.forEach((piece, number) => {
      for (let index = 0; index + 1 < piece.length; index++) {
        const rank = this.rank(piece[index].id, piece[index + 1].id);
        if (rank >= 0 && (best === null || rank < best.rank)) best = { rank, piece: number, index };
      }
    });
    return best;
  }
}

// A binary heap of (rank, position), smallest first.
class PairHeap {
  constructor() {
    this.items = [];
  }

  push(rank, position) {
    const items = this.items;
    let child = items.push([rank, position]) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!isBefore(items[child], items[parent])) break;
      [items[child], items[parent]] = [items[parent], items[child]];
      child = parent;
    }
  }

  pop() {
    const items = this.items;
    if (items.length === 0) return null;
    const top = items[0];
    const last = items.pop();
    if (items.length === 0) return top;
    items[0] = last;
    for (let parent = 0; ; ) {
      let child = 2 * parent + 1;
      if (child >= items.length) return top;
      if (child + 1 < items.length && isBefore(items[child + 1], items[child])) child++;
      if (!isBefore(items[child], items[parent])) return top;
      [items[child], items[parent]] = [items[parent], items[child]];
      parent = child;
    }
  }
}

function isBefore([rank, position], [otherRank, otherPosition]) {
  return rank < otherRank || (rank === otherRank && position < otherPosition);
}

function refuseLoneSurrogate(text) {
  let offset = 0; // in characters, as Python counts
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code >= 0xd800 && code <= 0xdfff) {
      throw new RangeError(
        `lone surrogate U+${code.toString(16).toUpperCase()} at offset ${offset}: it has no UTF-8 form, so it is refused`,
      );
    }
    offset++;
  }
}
