// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Proxy} from "@openzeppelin/contracts/proxy/Proxy.sol";
import {StorageSlot} from "@openzeppelin/contracts/utils/StorageSlot.sol";

/// A proxy of ERC-1822, older than the slots of ERC-1967. Its code replaces itself.
contract TokenUups is Proxy {
    function _implementation() internal view override returns (address) {
        return StorageSlot.getAddressSlot(keccak256("PROXIABLE")).value;
    }

    receive() external payable {
        _fallback();
    }
}
